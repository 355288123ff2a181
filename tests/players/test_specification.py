import chex
import pytest

from azjax import games, players
from azjax.players import AlphaZeroPlayer, NetworkPlayer, RandomPlayer

CONNECT_FOUR = games.make("connect_four")


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    players.save_player(directory / "player", trained)
    return directory


def test_random_is_the_random_player_of_the_game():
    assert players.load("random", CONNECT_FOUR) == RandomPlayer(CONNECT_FOUR)


def test_network_is_the_trained_network_alone(run, trained):
    player = players.load(f"network:{run}")
    assert isinstance(player, NetworkPlayer)
    assert player.game == trained.game
    chex.assert_trees_all_equal(player.variables, trained.variables)


def test_alphazero_searches_as_it_learnt(run, trained):
    player = players.load(f"alphazero:{run}")
    assert isinstance(player, AlphaZeroPlayer)
    assert player.search == trained.search
    assert player.simulations == players.DEFAULT_SIMULATIONS


def test_the_simulations_can_be_given(run):
    player = players.load(f"alphazero:{run}?simulations=7")
    assert isinstance(player, AlphaZeroPlayer)
    assert player.simulations == 7


def test_a_players_directory_is_as_good_as_a_runs(run, trained):
    player = players.load(f"network:{run / 'player'}", trained.game)
    assert isinstance(player, NetworkPlayer)


@pytest.mark.parametrize(
    "spec",
    ["", "minimax", "random:runs/x", "network", "network:", "alphazero:?simulations=2"],
)
def test_a_wrong_text_says_what_would_be_right(spec):
    with pytest.raises(ValueError, match="unknown player") as error:
        players.load(spec, CONNECT_FOUR)
    assert repr(spec) in str(error.value)
    assert "random, network:RUN, alphazero:RUN" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "spec", ["network:{run}?simulations=2", "alphazero:{run}?depth=2"]
)
def test_a_setting_that_the_player_has_not_is_refused(spec, run):
    with pytest.raises(ValueError, match=r"no setting .*alphazero:RUN\?simulations=N"):
        players.load(spec.format(run=run))


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "many", ""])
def test_simulations_must_be_a_number(number, run):
    with pytest.raises(ValueError, match="simulations must be a whole number from 1"):
        players.load(f"alphazero:{run}?simulations={number}")


def test_a_player_of_another_game_is_refused(run):
    with pytest.raises(ValueError, match="is for tic_tac_toe, not for connect_four"):
        players.load(f"alphazero:{run}", CONNECT_FOUR)


@pytest.mark.parametrize("spec", ["random", "network:pretrained"])
def test_a_player_without_a_game_of_its_own_needs_one(spec):
    with pytest.raises(ValueError, match="needs to know the game"):
        players.load(spec)


def test_a_run_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no player in .*nothing"):
        players.load(f"network:{tmp_path / 'nothing'}")
