"""Searches of Connect Four, and the settings of the searches."""

import json

import chex
import jax
import mctx
import numpy as np
import pytest

from azjax.search import (
    SEARCHES,
    AlphaZeroConfig,
    GumbelConfig,
    SearchConfig,
    improved_value,
)
from azjax.search.roots import dirichlet_noise

GUMBEL = GumbelConfig()
ALPHAZERO = AlphaZeroConfig()
CONFIGS = pytest.mark.parametrize("config", [GUMBEL, ALPHAZERO], ids=["gumbel", "puct"])
# AlphaZero's noise is slow, because it needs another program.
NOISY = pytest.mark.parametrize(
    "config",
    [
        pytest.param(GUMBEL, id="gumbel"),
        pytest.param(ALPHAZERO, id="puct", marks=pytest.mark.slow),
    ],
)
BATCH_SIZE = 4
NUM_SIMULATIONS = 200

# Player 0 has three in column 1 and is to move; player 1 has three in column 2.
CAN_WIN = "1 2 1 2 1 2"
# Player 1 is to move, and player 0 threatens to fill column 1.
MUST_BLOCK = "1 2 1 3 1"
# Seven cells are empty in columns 3, 5 and 7; player 0 is to move, no player can win.
#   O X . X . O .
#   X X X O . X O
#   O O X O . X O
#   X X O X . O X
#   O O O X O X O
#   X X O X O O X
NEARLY_FULL = " ".join("762711426515432146731162632426343747")
# Player 1 is to move, and player 0 has an open row of three: columns 2 and 6 win.
IS_LOST = "3 3 4 4 5"
# The full columns have the highest priors.
WANTS_FULL_COLUMNS = np.float32([30, 30, 0, 30, 0, 30, 5])


@pytest.fixture(scope="module")
def search(connect_four):
    """Searches some positions; all calls share one compiled function."""

    def run(config, *lines, explores=False, seed=0, **outputs):
        padded = connect_four.positions(*lines, *[""] * (BATCH_SIZE - len(lines)))
        output = connect_four.search(
            config,
            NUM_SIMULATIONS,
            padded,
            explores=explores,
            rng_key=jax.random.key(seed),
            **{"sharpness": 0.0, "value": 0.0, "logits": np.zeros(7, np.float32)}
            | outputs,
        )
        return jax.tree.map(lambda leaf: leaf[: len(lines)], output)

    run(GUMBEL, "")
    return run


value_of = jax.jit(improved_value)
noise_of = jax.jit(dirichlet_noise)
summary_of = jax.jit(lambda tree: tree.summary())


@CONFIGS
@pytest.mark.parametrize("column", ["1", "7"])
def test_search_wins_blocks_an_immediate_loss_and_finds_that_a_double_threat_loses(
    config, column, search
):
    lines = [line.replace("1", column) for line in (CAN_WIN, MUST_BLOCK)]
    output = search(config, *lines, IS_LOST)
    move = int(column) - 1
    assert output.action[:2].tolist() == [move, move]
    assert value_of(output)[2] < -0.5
    value = summary_of(output.search_tree).qvalues[0, move]
    np.testing.assert_allclose(value, 1.0, rtol=1e-6)


@CONFIGS
def test_no_illegal_move_is_in_the_tree_even_with_the_highest_prior(
    config, search, connect_four
):
    tree = search(config, NEARLY_FULL, logits=WANTS_FULL_COLUMNS).search_tree
    assert type(tree) is mctx.Tree  # without proofs
    legal = np.asarray(jax.jit(jax.vmap(connect_four.legal))(tree.embeddings))
    goes_on = ~tree.embeddings.terminated[..., None] & (tree.node_visits > 0)[..., None]
    assert not (goes_on & (tree.children_index >= 0) & ~legal).any()
    # The tree is deep enough to contain columns that become full within it.
    assert (goes_on & legal[:, :1] & ~legal).any()


@NOISY
def test_action_weights_of_illegal_moves_are_zero(config, search):
    output = search(config, NEARLY_FULL, logits=WANTS_FULL_COLUMNS, explores=True)
    np.testing.assert_array_equal(output.action_weights[0, np.array([0, 1, 3, 5])], 0)
    np.testing.assert_allclose(output.action_weights.sum(), 1, rtol=1e-6)


@CONFIGS
def test_search_without_noise_does_not_depend_on_the_key(config, search):
    # If moves have equally many visits, PUCT draws one of them.
    logits = np.float32([0.53, 0.31, 0.97, 0.11, 0.71, 0.23, 0.41])
    logits *= config == ALPHAZERO
    outputs = [
        search(config, "", MUST_BLOCK, seed=seed, logits=logits) for seed in (1, 2)
    ]
    chex.assert_trees_all_equal(*(output.search_tree for output in outputs))
    np.testing.assert_array_equal(outputs[0].action, outputs[1].action)


def test_puct_without_noise_visits_equal_moves_in_the_order_of_their_numbers(search):
    trees = [search(ALPHAZERO, "", seed=seed).search_tree for seed in (1, 2)]
    chex.assert_trees_all_equal(*trees)
    children = trees[0].children_index[0, 0]
    assert (children > 0).all()
    assert (np.diff(children) > 0).all()


@NOISY
def test_noise_depends_on_the_key_only(config, search):
    outputs = [
        search(config, *[""] * BATCH_SIZE, explores=True, seed=seed)
        for seed in (0, 0, 1)
    ]
    assert len(np.unique(outputs[0].action)) > 1
    first, same, other = (output.search_tree.children_visits for output in outputs)
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_noise_is_over_the_legal_actions_with_concentration_10_over_their_number():
    """The mean variance of the components is (L - 1) / (L**2 * (L * alpha + 1))."""
    num_legal = np.repeat([5, 20, 1, 0], [1_000, 1_000, 1, 1])
    legal = np.arange(20) < num_legal[:, None]
    for alpha in (0.03, 0.7, None):
        noise = np.asarray(noise_of(jax.random.key(0), legal, alpha))
        np.testing.assert_allclose(noise.sum(axis=-1), 1, rtol=1e-5)
        assert (noise[~legal & legal.any(axis=-1, keepdims=True)] == 0).all()
    for number in (5, 20):
        variance = noise[num_legal == number, :number].var(axis=0).mean()
        expected = (number - 1) / (number**2 * 11)
        np.testing.assert_allclose(variance, expected, rtol=0.1)


def test_puct_plays_a_most_visited_move_and_its_weights_are_the_visits(search):
    lines = ("", CAN_WIN, MUST_BLOCK)
    output = search(ALPHAZERO, *lines, sharpness=1.0)
    visits = output.search_tree.children_visits[:, 0]
    chosen = visits[np.arange(3), output.action]
    np.testing.assert_array_equal(chosen, visits.max(axis=-1))
    np.testing.assert_array_equal(visits.sum(axis=-1), NUM_SIMULATIONS)
    weights = visits / NUM_SIMULATIONS
    np.testing.assert_allclose(output.action_weights, weights, rtol=1e-6)


def test_the_improved_value_weights_the_visited_moves_by_the_policy(search):
    """Without policy on visited moves it is the root's value."""
    output = search(GUMBEL, NEARLY_FULL, "", sharpness=1.0)
    summary = summary_of(output.search_tree)
    is_visited = np.asarray(summary.visit_counts > 0)
    assert not is_visited[0].all()
    # No function of the visits.
    policy = np.float32([[3, 1, 4, 1, 5, 9, 2], [2, 7, 1, 8, 2, 8, 1]])
    found = value_of(
        output.replace(action_weights=policy / policy.sum(axis=1)[:, None])
    )
    expected = np.average(summary.qvalues, axis=1, weights=policy * is_visited)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    found = value_of(output.replace(action_weights=np.float32(~is_visited)))
    np.testing.assert_allclose(found[0], summary.value[0], rtol=1e-6)


def test_a_wrong_setting_is_refused():
    for setting, value, message in (
        ("max_num_considered_actions", 0, "must be an int from 1"),
        ("value_scale", float("nan"), "must be a finite number >= 0"),
        ("tree_reuse_nodes", 1.5, "must be an int from 0 .* 1.5"),
        ("tree_reuse_nodes", 10**12, "must be .* to 10000000: 10"),
        ("tree_reuse_nodes", True, "must be an int"),
        ("use_solver", "yes", "must be True or False: 'yes'"),
        ("c_init", float("inf"), "must be a finite number >= 0: inf"),
        ("forced_playouts", -1.0, "must be a finite number >= 0"),
        ("first_play_reduction", -1, "must be .* >= 0: -1"),
        ("dirichlet_alpha", 0.0, "must be a finite number > 0"),
        ("dirichlet_fraction", 1.5, "must be a number from 0 to 1"),
    ):
        is_gumbel = setting in ("max_num_considered_actions", "value_scale")
        kind = GumbelConfig if is_gumbel else AlphaZeroConfig
        with pytest.raises(ValueError, match=rf"search\.{setting} {message}"):
            kind(**{setting: value})


def test_settings_survive_json_and_those_of_other_algorithms_are_refused():
    config = AlphaZeroConfig(c_init=2, tree_reuse_nodes=7)
    read = SearchConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert read == config
    assert read.algorithm == "alphazero"
    with pytest.raises(ValueError, match=r"unknown setting search\.c_init"):
        SearchConfig.from_json({"algorithm": "gumbel", "c_init": 2.0}, "search.")
    with pytest.raises(ValueError, match="unknown search algorithm 'minimax'; known"):
        SEARCHES.find("minimax")


def test_an_int_is_accepted_as_dirichlet_alpha(connect_four):
    run = connect_four.compiled(AlphaZeroConfig(dirichlet_alpha=1), 2, explores=True)
    outputs, states = connect_four.outputs(), connect_four.positions("")
    output = jax.eval_shape(run, outputs, jax.random.key(0), states)
    assert output.action.shape == (1,)


def test_playouts_are_forced_only_when_a_search_explores(search):
    forced, expected = (
        search(config, "", sharpness=3.0).search_tree
        for config in (AlphaZeroConfig(forced_playouts=50.0), ALPHAZERO)
    )
    np.testing.assert_array_equal(forced.children_visits, expected.children_visits)
