import jax
import pytest

from azjax import arena, games, players
from azjax.players.serialization import pretrained_directory
from azjax.training.analysis.model_card import CARD_FILE

DIRECTORIES = sorted(players.shipped_players().iterdir())


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_a_pretrained_player_is_small_has_a_card_and_is_found_by_its_game(directory):
    assert sum(file.stat().st_size for file in directory.iterdir()) <= 4e6
    assert (directory / CARD_FILE).read_text().startswith("# ")
    game = games.make(directory.name.replace("-", ":", 1))
    assert pretrained_directory(game) == directory
    assert players.load_run("pretrained", game).game == game


@pytest.mark.parametrize(
    ("name", "spec", "count", "allowed"),
    [
        ("tic_tac_toe", "network:pretrained", 4520, 0.01),
        ("connect_four", "network:pretrained", 500, 0.05),
        pytest.param(
            *("tic_tac_toe", "alphazero:pretrained?simulations=32", 4520, 0),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("connect_four", "alphazero:pretrained?simulations=16", 200, 0.035),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_pretrained_player_makes_few_mistakes(name, spec, count, allowed):
    game = games.make(name)
    player = players.load(spec, game)
    positions = arena.shipped(game).subset(count)
    grade = arena.grade(player, positions, jax.random.key(0), min(count, 500))
    assert grade.mean <= allowed
