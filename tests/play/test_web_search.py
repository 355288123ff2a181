"""The page's search compared with Python's; needs Node.js."""

import dataclasses
import json
import pathlib
import subprocess

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.networks import ConvTrunkConfig, DenseTrunkConfig, NetworkConfig
from azjax.play.web_export import export_web
from azjax.search import AlphaZeroConfig

HERE = pathlib.Path(__file__).parent
SIMULATIONS = 40
GAME = games.make("tic_tac_toe")
step = jax.jit(GAME.step)
first = jax.device_get(jax.jit(GAME.init)())

pytestmark = pytest.mark.usefixtures("node")


@pytest.fixture(scope="module")
def trained():
    """Returns the shipped player with settings other than the defaults."""
    shipped = players.load_run("pretrained", GAME)
    search = AlphaZeroConfig(c_init=2.0, c_base=50.0, first_play_reduction=0.3)
    return dataclasses.replace(shipped, search=search)


def run_steps(trained, steps, folder):
    """Runs `steps` in the page's search, one after the other."""
    site = folder / "site"
    export_web(trained, site, name="x")
    (site / "package.json").write_text('{"type": "module"}')
    result = subprocess.run(
        # Optimizing the network's program would take longer than these few simulations.
        ["node", "--liftoff-only", HERE / "browser" / "search.mjs", site],
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def visits_of(decision, num_actions):
    visits = np.zeros(num_actions, int)
    for move in decision["moves"]:
        visits[move["action"]] = move["visits"]
    return visits


def player_of(trained):
    search = dataclasses.replace(trained.search, tree_reuse_nodes=400)
    return players.AlphaZeroPlayer(
        game=trained.game,
        search=search,
        simulations=SIMULATIONS,
        network=trained.network,
        variables=trained.variables,
    )


@jax.jit
def start(player, states):
    return player.init_carry(states)


@jax.jit
def analyze(player, states, memory):
    return player.analyze(jax.random.key(0), states, memory)


def state_after(actions):
    state = first
    for action in actions:
        state = step(state, np.int32(action))
    return state


def batched(positions):
    """Returns the states after lists of actions, as a batch."""
    states = [jax.device_get(state_after(actions)) for actions in positions]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


OPENINGS = [
    [],
    [0],
    [4],
    [4, 0],
    [0, 4, 8],
    [1, 3, 7],
    [0, 1, 2, 4],
    [0, 4, 8, 2, 6, 3],
]


FRESH = [
    {"actions": actions, "simulations": SIMULATIONS, "isFresh": True}
    for actions in OPENINGS
]
PLAYED = [[], [4, 0], [4, 0, 1, 7]]
CONTINUED = [
    {"actions": PLAYED[0], "simulations": SIMULATIONS, "isFresh": True},
    *({"actions": actions, "simulations": SIMULATIONS} for actions in PLAYED[1:]),
    # A position of another game, which is not in the tree.
    {"actions": [4, 0, 1], "simulations": SIMULATIONS},
]
WON = {"actions": [0, 3, 1, 4, 2], "simulations": 1}


@pytest.fixture(scope="module")
def decisions(trained, tmp_path_factory):
    """Returns the decisions of the page's search in all these positions."""
    steps = [*FRESH, *CONTINUED, WON]
    return run_steps(trained, steps, tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module")
def fresh(trained):
    """Python's search of the openings."""
    return analyze_openings(trained)


def test_visits_and_values_equal_pythons(fresh, decisions):
    check_same(fresh, decisions[: len(FRESH)])


@pytest.mark.slow
@pytest.mark.parametrize("value_head", ["wdl", "scalar"])
@pytest.mark.parametrize(
    "trunk",
    [
        ConvTrunkConfig(num_blocks=2, channels=8),
        ConvTrunkConfig(num_blocks=2, channels=8, global_pooling=True),
        DenseTrunkConfig(num_blocks=2, width=16, stem_channels=8),
    ],
    ids=str,
)
def test_every_network_runs_in_the_browsers_runtime(
    trained, tmp_path, trunk, value_head
):
    config = NetworkConfig(trunk=trunk, value_head=value_head)
    network, variables = players.first_network(0, trained.game, config)
    rng = np.random.default_rng(1)
    variables = jax.tree.map(
        lambda leaf: np.asarray(leaf + 0.05 * rng.normal(size=leaf.shape), leaf.dtype),
        jax.device_get(variables),
    )
    changes = {"network": network, "variables": variables, "config": config}
    other = dataclasses.replace(trained, **changes)
    check_same(analyze_openings(other), run_steps(other, FRESH, tmp_path))


def analyze_openings(trained):
    player, states = player_of(trained), batched(OPENINGS)
    return jax.device_get(analyze(player, states, start(player, states))[1])


def check_same(analysis, decisions):
    for index, decision in enumerate(decisions):
        expected = analysis.visits[index]
        np.testing.assert_array_equal(visits_of(decision, 9), expected)
        assert decision["action"] == expected.argmax()
        for move in decision["moves"]:
            action = move["action"]
            prior = analysis.prior[index, action]
            np.testing.assert_allclose(move["prior"], prior, atol=1e-5)
            if move["visits"]:
                value = analysis.action_values[index, action]
                np.testing.assert_allclose(move["value"], value, atol=1e-5)
        check_same_tree(decision["tree"], analysis.branches, index)
        line = [move["action"] for move in decision["line"]]
        if (expected == expected.max()).sum() == 1:
            known = [action for action in analysis.line[index].tolist() if action >= 0]
            assert line == known
        chances = np.array(decision["result"])
        np.testing.assert_allclose(chances.sum(), 1, atol=1e-6)
        np.testing.assert_allclose(
            chances[0] - chances[2], decision["value"], atol=1e-5
        )


def check_same_tree(tree, branches, index):
    """Checks that the page's tree equals Python's, and that it shows every node."""
    paths, found = [], {}
    for node in tree:
        before = paths[node["parent"]] if node["parent"] >= 0 else ()
        paths.append((*before, node["action"]))
        found[paths[-1]] = [node["visits"], node["prior"], node["value"]]
    known, expected = {0: ()}, {}
    for rank in range(1, (branches.visits[index] > 0).sum()):
        before = known[int(branches.parents[index, rank])]
        known[rank] = (*before, int(branches.actions[index, rank]))
        expected[known[rank]] = [
            leaf[index, rank].item()
            for leaf in (branches.visits, branches.priors, branches.values)
        ]
    assert found.keys() == expected.keys()
    for path, numbers in expected.items():
        np.testing.assert_allclose(found[path], numbers, atol=1e-5)
    visits = [node["visits"] for node in tree]
    assert visits == sorted(visits, reverse=True)


@pytest.mark.usefixtures("fresh")  # the same program
def test_the_tree_is_reused_from_move_to_move(trained, decisions):
    player = player_of(trained)
    # As many equal positions as there are openings, for the same program.
    batches = [batched([actions] * len(OPENINGS)) for actions in PLAYED]
    memory, expected = start(player, batches[0]), []
    for states in batches:
        _, analysis, memory = analyze(player, states, memory)
        expected.append(np.asarray(analysis.visits)[0])
    found = decisions[len(FRESH) : -1]
    for decision, visits in zip(found, expected, strict=False):
        np.testing.assert_array_equal(visits_of(decision, 9), visits)
    assert [decision["visits"] > SIMULATIONS + 1 for decision in found] == [
        *(False, True, True, False)
    ]


def test_a_finished_game_is_not_searched(decisions):
    assert decisions[-1] == {"error": "the game is over"}
