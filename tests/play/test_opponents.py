import jax.numpy as jnp
import pytest
from coin_toss import CoinToss

from azjax import games, players
from azjax.games.tic_tac_toe import TicTacToe
from azjax.play import opponents
from azjax.play.opponents import default_mcts, default_minimax, default_opponent


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_the_pretrained_player_is_first(name):
    assert default_opponent(games.make(name)) == "alphazero:pretrained"


def test_another_size_has_no_pretrained_player():
    game = games.make("gomoku:3,3,3")
    assert default_opponent(game) == default_minimax(game)


def test_games_with_fewer_moves_are_searched_deeper():
    depths = [
        int(default_minimax(games.make(name)).removeprefix("minimax:"))
        for name in ("gomoku", "breakthrough", "othello")
    ]
    assert depths == sorted(set(depths))


def test_the_depth_is_at_most_the_length_of_the_game():
    assert default_minimax(games.make("gomoku:2,2,2")) == "minimax:4"


def test_longer_games_get_fewer_playouts():
    assert default_minimax(games.make("go:5")) is None
    numbers = [
        int(default_mcts(games.make(name)).removeprefix("mcts:"))
        for name in ("go:19", "go:13", "go:9", "go:5")
    ]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("name", ["go:19", "othello"])
def test_the_opponent_can_be_loaded(name):
    game = games.make(name)
    players.load(default_opponent(game), game)


def test_outcomes_of_chance_make_the_affordable_depth_smaller(monkeypatch):
    monkeypatch.setattr(opponents, "MIN_BRANCHING", 1)

    class Estimated(CoinToss):
        def evaluate(self, state):
            return jnp.float32(0)

    class Certain(TicTacToe):
        evaluate = Estimated.evaluate

    depth, certain_depth = (
        int(default_minimax(game()).removeprefix("minimax:"))
        for game in (Estimated, Certain)
    )
    assert depth < certain_depth
