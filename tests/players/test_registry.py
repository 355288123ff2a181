import dataclasses

import chex
import pytest

from azjax import games, players
from azjax.players import (
    AlphaZeroPlayer,
    GreedyPlayer,
    MCTSPlayer,
    MinimaxPlayer,
    NetworkPlayer,
    RandomPlayer,
)
from azjax.search import GumbelConfig

CONNECT_FOUR = games.make("connect_four")


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    players.save_player(directory / "player", trained)
    return directory


def test_random_loads_a_random_player():
    assert players.load("random", CONNECT_FOUR) == RandomPlayer(CONNECT_FOUR)


@pytest.mark.parametrize(
    ("spec", "player"),
    [
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


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("minimax:0", "DEPTH must be a whole number from 1 to 32 .*'0'"),
        ("minimax:33", "DEPTH must be a whole number from 1 to 32 .*'33'"),
        ("minimax:deep", "DEPTH must be a whole number .*'deep'"),
        ("mcts:0", "N must be a whole number from 1 to 100000 .*'0'"),
        ("mcts:1e3", "N must be a whole number .*'1e3'"),
        ("mcts:9?exploration=-1", "exploration must be a number from 0 .*'-1'"),
        (
            "mcts:9?tree_reuse_nodes=some",
            "tree_reuse_nodes must be a whole number .*'some'",
        ),
        ("network:{run}?temperature=-1", "temperature must be a number from 0 .*'-1'"),
        ("network:{run}?temperature=nan", "temperature must be a number .*'nan'"),
    ],
)
def test_an_invalid_number_is_refused(spec, message, run):
    with pytest.raises(ValueError, match=message) as error:
        players.load(spec.format(run=run), CONNECT_FOUR)
    assert "\n" not in str(error.value)


def test_network_players_accept_a_temperature(run):
    assert players.load(f"network:{run}").temperature == 0
    assert players.load(f"network:{run}?temperature=0.5").temperature == 0.5


def test_network_players_average_over_symmetries_if_asked(run):
    assert not players.load(f"network:{run}").use_symmetries
    assert players.load(f"network:{run}?use_symmetries=true").use_symmetries
    with pytest.raises(ValueError, match=r"use_symmetries must be .*'2'"):
        players.load(f"network:{run}?use_symmetries=2")


def test_network_loads_the_trained_network(run, trained):
    player = players.load(f"network:{run}")
    assert isinstance(player, NetworkPlayer)
    assert player.game == trained.game
    chex.assert_trees_all_equal(player.variables, trained.variables)


def test_alphazero_uses_the_search_settings_of_training(run, trained):
    player = players.load(f"alphazero:{run}")
    assert isinstance(player, AlphaZeroPlayer)
    assert player.search == trained.search
    assert player.simulations == players.DEFAULT_SIMULATIONS


def test_alphazero_accepts_a_number_of_simulations(run):
    player = players.load(f"alphazero:{run}?simulations=7")
    assert isinstance(player, AlphaZeroPlayer)
    assert player.simulations == 7


def test_a_player_directory_can_be_loaded(run, trained):
    player = players.load(f"network:{run / 'player'}", trained.game)
    assert isinstance(player, NetworkPlayer)


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


@pytest.mark.parametrize("spec", ["pretrained", "pretrained?simulations=2", "{run}"])
def test_the_error_for_a_run_without_the_kind_of_player_says_its_form(spec, run):
    with pytest.raises(ValueError, match=r"unknown player .*; a run is given as alpha"):
        players.load(spec.format(run=run), CONNECT_FOUR)


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        (
            "alphazero:{run}?depth=2",
            "no setting 'depth'; its settings are simulations, algorithm, "
            "use_solver, rescale_values, tree_reuse_nodes, "
            "max_num_considered_actions, value_scale, c_init, c_base, "
            "first_play_reduction",
        ),
        (
            "network:{run}?simulations=2",
            "no setting 'simulations'; its settings are temperature, use_symmetries",
        ),
        ("greedy?depth=2", "no setting 'depth'; it has none"),
    ],
)
def test_an_unknown_setting_is_refused(spec, known, run):
    with pytest.raises(ValueError, match=known):
        players.load(spec.format(run=run))


def test_search_settings_replace_those_of_the_run(run, trained):
    player = players.load(
        f"alphazero:{run}?algorithm=gumbel&tree_reuse_nodes=50&use_solver=true"
    )
    assert isinstance(player, AlphaZeroPlayer)
    assert player.search == GumbelConfig(tree_reuse_nodes=50, use_solver=True)
    assert player.simulations == players.DEFAULT_SIMULATIONS


def test_search_constants_replace_those_of_the_run(run, trained):
    player = players.load(
        f"alphazero:{run}?c_init=0.5&c_base=100&first_play_reduction=0.2"
    )
    assert player.search == dataclasses.replace(
        trained.search, c_init=0.5, c_base=100.0, first_play_reduction=0.2
    )
    player = players.load(
        f"alphazero:{run}?algorithm=gumbel&value_scale=2&max_num_considered_actions=4"
        "&rescale_values=false"
    )
    assert player.search == GumbelConfig(
        value_scale=2.0, max_num_considered_actions=4, rescale_values=False
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("value_scale=2", "value_scale is not a setting of .* alphazero"),
        ("max_num_considered_actions=2", "not a setting of .* alphazero"),
        ("rescale_values=false", "rescale_values is not a setting of .* alphazero"),
        ("algorithm=gumbel&c_init=1", "c_init is not a setting of .* gumbel"),
        ("algorithm=gumbel&c_base=9", "c_base is not a setting of .* gumbel"),
        ("algorithm=gumbel&first_play_reduction=0", "not a setting of .* gumbel"),
        ("c_base=0", "c_base must be a number from 1"),
        ("c_init=much", "c_init must be a number from 0 .*'much'"),
    ],
)
def test_a_constant_of_another_algorithm_is_refused(settings, message, run):
    with pytest.raises(ValueError, match=message) as error:
        players.load(f"alphazero:{run}?{settings}")
    assert "\n" not in str(error.value)


def test_missing_settings_are_those_of_the_run(trained, tmp_path):
    search = dataclasses.replace(trained.search, use_solver=True, tree_reuse_nodes=9)
    changed = dataclasses.replace(trained, search=search)
    players.save_player(tmp_path / "player", changed)
    player = players.load(f"alphazero:{tmp_path}?simulations=3")
    assert isinstance(player, AlphaZeroPlayer)
    assert player.search == search
    without = players.load(f"alphazero:{tmp_path}?use_solver=false&tree_reuse_nodes=0")
    assert isinstance(without, AlphaZeroPlayer)
    assert without.search == dataclasses.replace(
        search, use_solver=False, tree_reuse_nodes=0
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("algorithm=minimax", "algorithm must be alphazero or gumbel .*'minimax'"),
        ("algorithm=", "algorithm must be alphazero or gumbel .*''"),
        ("use_solver=1", "use_solver must be true or false .*'1'"),
        ("use_solver=True", "use_solver must be true or false .*'True'"),
        ("tree_reuse_nodes=two", "tree_reuse_nodes must be a whole number .*'two'"),
        (
            "tree_reuse_nodes=-1",
            "tree_reuse_nodes must be a whole number from 0 .*'-1'",
        ),
        (
            "tree_reuse_nodes=1000000",
            "tree_reuse_nodes must be a whole number .* to 100000 ",
        ),
        (
            "tree_reuse_nodes=" + "9" * 5000,
            "tree_reuse_nodes must be a whole number .* to 100000 ",
        ),
        ("use_solver=true&use_solver=false", "the setting 'use_solver' twice"),
    ],
)
def test_an_invalid_setting_is_named(setting, message, run):
    with pytest.raises(ValueError, match=message) as error:
        players.load(f"alphazero:{run}?{setting}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "many", ""])
def test_simulations_must_be_a_number(number, run):
    with pytest.raises(ValueError, match="simulations must be a whole number from 1"):
        players.load(f"alphazero:{run}?simulations={number}")


def test_a_player_of_another_game_is_refused(run):
    with pytest.raises(ValueError, match="is for tic_tac_toe, not for connect_four"):
        players.load(f"alphazero:{run}", CONNECT_FOUR)


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


def test_a_missing_run_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no player in .*nothing"):
        players.load(f"network:{tmp_path / 'nothing'}")
