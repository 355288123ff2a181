import jax
import pytest

from azjax import arena, games, players

NAMES = ("connect_four", "tic_tac_toe")


@pytest.mark.parametrize("name", NAMES)
def test_a_pretrained_player_is_small(name):
    files = (players.shipped_players() / name).iterdir()
    assert sum(file.stat().st_size for file in files) <= 2e6


def test_the_pretrained_tic_tac_toe_player_makes_no_mistake_anywhere():
    game = games.make("tic_tac_toe")
    player = players.load("alphazero:pretrained?simulations=32", game)
    graded = arena.grade(player, arena.shipped(game), jax.random.key(0))
    assert graded.mean == 0


@pytest.mark.parametrize(("kind", "allowed"), [("network", 0.2), ("alphazero", 0.15)])
def test_the_pretrained_connect_four_player_makes_few_mistakes(kind, allowed):
    game = games.make("connect_four")
    player = players.load(f"{kind}:pretrained", game)
    positions = arena.shipped(game).subset(500)
    assert arena.grade(player, positions, jax.random.key(0)).mean < allowed
