"""The pages of the games, which the documentation generates."""

import importlib
from pathlib import Path

import pytest

from azjax import games

ROOT = Path(__file__).parent.parent


@pytest.fixture
def game_pages(monkeypatch):
    for directory in ("docs/ext", "experiments"):
        monkeypatch.syspath_prepend(str(ROOT / directory))
    return importlib.import_module("game_pages")


def test_every_game_has_a_page(game_pages):
    specs = [spec for spec, _, _ in game_pages.draw_games.POSITIONS]
    assert sorted(spec.partition(":")[0] for spec in specs) == list(games.available())


def test_a_page_says_what_the_game_says(game_pages, monkeypatch, tmp_path):
    # Two of the players that ship; loading all takes longer.
    for name in "hex-7", "tic_tac_toe":
        (tmp_path / name).symlink_to(game_pages.shipped_players() / name)
    monkeypatch.setattr(game_pages, "shipped_players", lambda: tmp_path)
    page = game_pages.game_page("hex", "hex:7", "Hex", ("OpenSpiel",))
    assert "\n| actions | 121 |\n" in page
    assert "| `size` | `11` | rows and columns, 2 to 19. |" in page
    assert "The identity and the half turn." in page
    assert "with: OpenSpiel." in page
    assert "azjax play hex:7" in page
    assert "azjax play tic_tac_toe" not in page
    assert "size: rows" not in page


def test_every_option_has_a_meaning(game_pages):
    for name in games.available():
        game = games.make(name)
        _, meanings = game_pages.rules_and_options(type(game))
        assert set(game.options) <= set(meanings), name
