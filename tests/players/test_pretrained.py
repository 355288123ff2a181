import jax
import pytest

from azjax import arena, games, players
from azjax.players.serialization import pretrained_directory
from azjax.training.model_card import CARD_FILE

DIRECTORIES = sorted(players.shipped_players().iterdir())


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_a_pretrained_player_is_small_and_has_a_card(directory):
    assert sum(file.stat().st_size for file in directory.iterdir()) <= 4e6
    assert (directory / CARD_FILE).read_text().startswith("# ")


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_a_pretrained_player_is_found_by_its_game(directory):
    game = players.load_player(directory).game
    assert pretrained_directory(game) == directory
    assert players.load_run("pretrained", game).game == game


def test_the_pretrained_tic_tac_toe_player_makes_no_mistake_anywhere():
    game = games.make("tic_tac_toe")
    player = players.load("alphazero:pretrained?simulations=32", game)
    graded = arena.grade(player, arena.shipped(game), jax.random.key(0))
    assert graded.mean == 0


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [("network:pretrained", 0.05), ("alphazero:pretrained?simulations=16", 0.035)],
)
def test_the_pretrained_connect_four_player_makes_few_mistakes(spec, allowed):
    game = games.make("connect_four")
    player = players.load(spec, game)
    positions = arena.shipped(game).subset(500)
    assert arena.grade(player, positions, jax.random.key(0)).mean < allowed
