import pytest

from azjax import games
from azjax.play.server import live_catalog, make_catalog
from azjax.play.server.live_catalog import LiveCatalog


def test_new_runs_are_found(tmp_path, monkeypatch, save_run):
    monkeypatch.setattr(live_catalog, "REFRESH_INTERVAL", 0.0)
    catalog = LiveCatalog(make_catalog(["tic_tac_toe"], (), tmp_path / "runs"))
    assert catalog.runs() == {}
    save_run(tmp_path / "runs/first", seed=1)
    assert list(catalog.runs()) == ["first"]
    assert "network:runs/first" in catalog.games()["tic_tac_toe"].players


def test_only_offered_games_have_a_key(tmp_path):
    catalog = LiveCatalog(make_catalog(["tic_tac_toe"], (), tmp_path))
    assert catalog.key_of(games.make("tic_tac_toe")) == "tic_tac_toe"
    assert catalog.key_of(games.make("hex")) is None


def test_unknown_games_and_players_are_rejected(tmp_path):
    catalog = LiveCatalog(make_catalog(["tic_tac_toe"], (), tmp_path))
    with pytest.raises(ValueError, match="unknown game 'hex'; known games: tic_tac"):
        catalog.find("hex", "random")
    with pytest.raises(ValueError, match="unknown player 'x'; known players: alpha"):
        catalog.find("tic_tac_toe", "x")
