import dataclasses
import functools
import json
import math
import os

import chex
import pytest
import safetensors.numpy
from flax import nnx
from untrained import untrained

from azjax import games, players
from azjax.networks import CustomModules
from azjax.players import (
    DEFAULT_SIMULATIONS,
    AlphaZeroPlayer,
    GreedyPlayer,
    MCTSPlayer,
    MinimaxPlayer,
    MissingModulesError,
    NetworkPlayer,
    RandomPlayer,
    save_player,
)
from azjax.players.registry import load_learned
from azjax.players.serialization import PLAYER_FILE, config_of
from azjax.search import GumbelConfig

CONNECT_FOUR = games.make("connect_four")


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    players.save_player(directory / "player", trained)
    return directory


@pytest.mark.parametrize(
    ("spec", "player"),
    [
        ("random", RandomPlayer(CONNECT_FOUR)),
        ("greedy", GreedyPlayer(CONNECT_FOUR)),
        ("minimax:4", MinimaxPlayer(CONNECT_FOUR, 4)),
        ("mcts:200", MCTSPlayer(CONNECT_FOUR, 200)),
        (
            "mcts:9?exploration=0.5&tree_reuse_nodes=20",
            MCTSPlayer(CONNECT_FOUR, 9, exploration=0.5, tree_reuse_nodes=20),
        ),
    ],
)
def test_player_strings_without_runs_build_their_players(spec, player):
    assert players.load(spec, CONNECT_FOUR) == player


def test_a_search_without_a_heuristic_is_noted(caplog):
    players.load("minimax:2", games.make("hex:3"))
    (text,) = caplog.messages
    note = (
        "minimax:2 sees wins and losses within its depth only: hex:3 has no heuristic"
    )
    assert text == note
    players.load("minimax:9", games.make("hex:3"))  # to the end of the game
    players.load("minimax:2", CONNECT_FOUR)
    assert len(caplog.messages) == 1


def test_network_loads_the_trained_network_of_a_run_or_a_player_directory(run, trained):
    for directory in (run, run / "player"):
        player = players.load(f"network:{directory}", trained.game)
        assert isinstance(player, NetworkPlayer)
        chex.assert_trees_all_equal(player.variables, trained.variables)
    player = players.load(f"network:{run}")
    assert player.game == trained.game
    assert (player.temperature, player.use_symmetries) == (0, False)
    player = players.load(f"network:{run}?temperature=0.5&use_symmetries=true")
    assert (player.temperature, player.use_symmetries) == (0.5, True)


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        # Missing settings are those of the run.
        ("", {}),
        ("simulations=7", {}),
        ("use_solver=false&tree_reuse_nodes=0", {"use_solver": False}),
        ("tree_reuse_nodes=9", {"tree_reuse_nodes": 9}),
        (
            "c_init=0.5&c_base=100&first_play_reduction=0.2",
            {"c_init": 0.5, "c_base": 100.0, "first_play_reduction": 0.2},
        ),
        (
            "algorithm=gumbel&tree_reuse_nodes=50&use_solver=true",
            GumbelConfig(tree_reuse_nodes=50, use_solver=True),
        ),
        (
            "algorithm=gumbel&value_scale=2&max_num_considered_actions=4"
            "&rescale_values=false&use_solver=false",
            GumbelConfig(
                value_scale=2.0, max_num_considered_actions=4, rescale_values=False
            ),
        ),
    ],
)
def test_alphazero_uses_the_search_of_training_with_other_settings(
    trained, tmp_path, settings, changes
):
    search = dataclasses.replace(trained.search, use_solver=True)
    changed = dataclasses.replace(trained, search=search)
    players.save_player(tmp_path / "player", changed)
    player = players.load(f"alphazero:{tmp_path}?{settings}".removesuffix("?"))
    assert isinstance(player, AlphaZeroPlayer)
    if isinstance(changes, dict):
        changes = dataclasses.replace(search, **changes)
    assert player.search == changes
    simulations = 7 if "simulations" in settings else players.DEFAULT_SIMULATIONS
    assert player.simulations == simulations


WHOLE = "must be a whole number"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("minimax:0", f"DEPTH {WHOLE} from 1 to 32 .*'0'"),
        ("minimax:33", f"DEPTH {WHOLE} from 1 to 32 .*'33'"),
        ("minimax:deep", f"DEPTH {WHOLE} .*'deep'"),
        ("mcts:0", f"N {WHOLE} from 1 to 100000 .*'0'"),
        ("mcts:9?exploration=-1", "exploration must be a number from 0 .*'-1'"),
        ("mcts:9?tree_reuse_nodes=some", f"tree_reuse_nodes {WHOLE} .*'some'"),
        ("greedy?depth=2", "no setting 'depth'; it has none"),
        ("network:RUN?temperature=-1", "temperature must be a number from 0 .*'-1'"),
        ("network:RUN?temperature=nan", "temperature must be a number .*'nan'"),
        ("network:RUN?use_symmetries=2", "use_symmetries must be .*'2'"),
        ("network:RUN?simulations=2", "its settings are temperature, use_symmetries"),
        (
            "alphazero:RUN?depth=2",
            "no setting 'depth'; its settings are simulations, algorithm, "
            "use_solver, rescale_values, tree_reuse_nodes, "
            "max_num_considered_actions, value_scale, c_init, c_base, "
            "first_play_reduction",
        ),
        *(
            (f"alphazero:RUN?simulations={number}", f"simulations {WHOLE} from 1")
            for number in ("0", "-1", "1.5", "many", "")
        ),
        *(
            (f"alphazero:RUN?algorithm={name}", f"alphazero or gumbel .*'{name}'")
            for name in ("minimax", "")
        ),
        *(
            (f"alphazero:RUN?use_solver={text}", f"must be true or false .*'{text}'")
            for text in ("1", "True")
        ),
        *(
            (f"alphazero:RUN?tree_reuse_nodes={text}", f"reuse_nodes {WHOLE} {limit}")
            for text, limit in (
                ("two", ".*'two'"),
                ("-1", "from 0 .*'-1'"),
                ("1000000", ".* to 100000 "),
                ("9" * 5000, ".* to 100000 "),
            )
        ),
        (
            "alphazero:RUN?use_solver=true&use_solver=false",
            "'use_solver' twice",
        ),
        ("alphazero:RUN?c_base=0", "c_base must be a number from 1"),
        ("alphazero:RUN?c_init=much", "c_init must be a number from 0 .*'much'"),
        # Constants of another algorithm.
        *(
            (f"alphazero:RUN?{setting}", f"{setting[:9]}.* is not .* alphazero")
            for setting in (
                *("value_scale=2", "max_num_considered_actions=2"),
                "rescale_values=false",
            )
        ),
        *(
            (f"alphazero:RUN?algorithm=gumbel&{name}=1", f"{name} is not .* gumbel")
            for name in ("c_init", "c_base", "first_play_reduction")
        ),
    ],
)
def test_an_invalid_setting_is_named(spec, message, run, trained):
    with pytest.raises(ValueError, match=message) as error:
        players.load(spec.replace("RUN", str(run)), trained.game)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "spec",
    [
        *("", "minimax", "mcts:", "greedy:2", "perfect:connect_four", "best"),
        *("random:runs/x", "network", "network:", "alphazero:?simulations=2"),
    ],
)
def test_an_unknown_player_error_lists_all_forms(spec):
    with pytest.raises(ValueError, match="unknown player") as error:
        players.load(spec, CONNECT_FOUR)
    assert repr(spec) in str(error.value)
    for form in "random", "minimax:DEPTH", "mcts:N", "network:RUN", "alphazero:RUN":
        assert f"{form}, " in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        *(
            (spec, "unknown player .*; a run is given as alpha")
            for spec in ("pretrained", "pretrained?simulations=2", "RUN")
        ),
        ("alphazero:RUN", "is for tic_tac_toe, not for connect_four"),
        ("network:RUN/nothing", "no player in .*nothing"),
    ],
)
def test_a_run_without_its_kind_of_another_game_or_missing_is_named(spec, message, run):
    with pytest.raises(ValueError, match=message):
        players.load(spec.replace("RUN", str(run)), CONNECT_FOUR)


@pytest.mark.parametrize(
    "spec",
    [
        *("random", "greedy", "minimax:2", "mcts:10", "perfect"),
        *("network:pretrained", "alphazero:pretrained"),
    ],
)
def test_players_without_a_run_require_a_game(spec):
    with pytest.raises(ValueError, match="requires a game"):
        players.load(spec)


def test_a_learned_player_has_the_settings_of_its_run(trained, run):
    player = load_learned("alphazero", run, trained.game)
    assert player.search == trained.search
    assert player.simulations == DEFAULT_SIMULATIONS
    assert load_learned("network", run, trained.game).temperature == 0


@pytest.mark.parametrize(
    ("kind", "suffix", "game", "message"),
    [
        *(
            (kind, "", "tic_tac_toe", "kind must be one of alphazero, ")
            for kind in ("gtp:touch owned", "uci:touch owned", "random", "human", "")
        ),
        # A directory is not parsed as a player string.
        ("alphazero", "?simulations=5", "tic_tac_toe", r"no player in .*run0\?simul"),
        ("network", "", "hex", "is for tic_tac_toe, not for hex"),
    ],
)
def test_another_kind_directory_or_game_is_refused(run, kind, suffix, game, message):
    with pytest.raises(ValueError, match=message):
        load_learned(kind, run.with_name(run.name + suffix), games.make(game))


@pytest.mark.parametrize("kind", ["alphazero", "network"])
def test_a_network_of_unknown_origin_may_be_less_large(trained, tmp_path, kind):
    for num_blocks, message in (
        (2, "do not fit the network"),
        (8, r"takes \d+ bytes; at most 2147483648 are loaded"),
    ):
        trunk = {"name": "conv", "channels": 2048, "num_blocks": num_blocks}
        config = json.dumps(config_of(trained) | {"network": {"trunk": trunk}})
        content = safetensors.numpy.save({}, metadata={"azjax": config})
        (tmp_path / PLAYER_FILE).write_bytes(content)
        with pytest.raises(ValueError, match=r"takes \d+ bytes; at most 536870912 are"):
            load_learned(kind, tmp_path, trained.game)
        with pytest.raises(ValueError, match=message):
            players.load(f"{kind}:{tmp_path}")


@pytest.mark.parametrize("kind", ["alphazero", "network", "q_learning"])
def test_a_file_of_unknown_origin_may_be_less_large(tmp_path, kind):
    path = tmp_path / PLAYER_FILE
    path.touch()
    for size, load in (
        (2**30, lambda: load_learned(kind, tmp_path, CONNECT_FOUR)),
        (2**32, lambda: players.load(f"{kind}:{tmp_path}")),
    ):
        os.truncate(path, size)  # takes no space on the disk
        with pytest.raises(ValueError, match=r"has more than \d+ bytes"):
            load()


class LinearTrunk(nnx.Module):
    def __init__(self, observation_shape, rngs, *, width):
        self.linear = nnx.Linear(math.prod(observation_shape), width, rngs=rngs)

    def __call__(self, observation):
        return self.linear(observation.reshape(len(observation), -1))


def custom_parts(width):
    return CustomModules(trunk=functools.partial(LinearTrunk, width=width))


def test_a_network_with_custom_parts_is_loaded_with_them_if_they_fit(trained, tmp_path):
    network, variables = untrained(trained.game, trained.config, custom_parts(3))
    player = dataclasses.replace(
        trained, network=network, variables=variables, has_custom_modules=True
    )
    save_player(tmp_path / "player", player)
    load = functools.partial(load_learned, "network", tmp_path, trained.game)
    assert load(custom_parts(3)).game == trained.game
    with pytest.raises(MissingModulesError, match="--modules MODULE:NAME"):
        load()
    # Others are not built, which would take 200 GB.
    for width, message in (
        (4, "do not fit the network"),
        (10**9, r"takes \d+ bytes; at most 536870912 are"),
    ):
        with pytest.raises(ValueError, match=message):
            load(custom_parts(width))
