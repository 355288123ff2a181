import pytest

from azjax import games, players
from azjax.commands.play import default_opponent


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_a_shipped_player_plays_if_nobody_is_asked_for(name):
    assert default_opponent(games.make(name)) == "alphazero:pretrained"


@pytest.mark.parametrize("spec", ["othello", "go:9", "hex:5,swap=true"])
def test_every_game_has_an_opponent(spec):
    game = games.make(spec)
    players.load(default_opponent(game), game)
