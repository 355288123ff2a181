import json
import os

import pytest

from azjax.play.server.catalog import (
    KEPT_TOURNAMENTS,
    MAX_BYTES,
    find_ratings,
    player_key,
)


def save(directory, text):
    directory.mkdir()
    (directory / "results.json").write_text(text)


GOOD = {"game": "go:size=9", "players": [{"player": "random", "elo": -50}]}


def test_ratings_are_found_by_game_and_player(tmp_path):
    save(tmp_path / "arena", json.dumps(GOOD))
    assert find_ratings(tmp_path) == {"go:size=9": {"random": -50.0}}


def test_without_tournaments_there_are_no_ratings(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "file").write_text("")
    assert find_ratings(tmp_path) == find_ratings(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '"game"', "[" * 10_000, "\0"),
        *(
            json.dumps({**GOOD, **wrong})
            for wrong in (
                {"game": ["go"]},
                {"players": None},
                {"players": [None]},
                {"players": [{"player": "random"}]},
                {"players": [{"player": ["random"], "elo": 1}]},
                {"players": [{"player": "random", "elo": "1"}]},
                {"players": [{"player": "random", "elo": True}]},
                {"players": [{"player": "random", "elo": 10**400}]},
                {"players": [{"player": "random", "elo": float("inf")}]},
                {"players": [{"player": "random", "elo": float("nan")}]},
                {"players": [{"player": "random", "elo": 1e9}]},
                {"players": [{"player": "r" * 10_000, "elo": 1}]},
                {"players": [{"player": f"{n}", "elo": 1} for n in range(2000)]},
                {"players": {"player": "random", "elo": 1}},
                {"game": "g" * 10_000},
            )
        ),
        json.dumps(GOOD) + " " * MAX_BYTES,
    ],
)
def test_malformed_results_are_ignored(tmp_path, text):
    save(tmp_path / "wrong", text)
    save(tmp_path / "arena", json.dumps(GOOD))
    assert list(find_ratings(tmp_path)) == ["go:size=9"]


def test_results_in_a_run_are_ignored(tmp_path):
    save(tmp_path / "run", json.dumps(GOOD))
    (tmp_path / "run/config.json").write_text("{}")
    assert find_ratings(tmp_path) == {}


def test_the_newest_files_are_read_once(tmp_path, monkeypatch):
    for number in range(KEPT_TOURNAMENTS + 9):
        save(tmp_path / f"{number}", json.dumps({**GOOD, "game": f"go:{number}"}))
        path = tmp_path / f"{number}" / "results.json"
        os.utime(path, (number, number))
    found = find_ratings(tmp_path)
    assert list(found) == [f"go:{n}" for n in range(9, KEPT_TOURNAMENTS + 9)]
    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", None)
        assert find_ratings(tmp_path) == found
    # Same age, different size.
    about = path.stat()
    path.write_text(json.dumps({**GOOD, "game": "hex"}))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert "hex" in find_ratings(tmp_path)


def test_links_are_not_followed(tmp_path):
    save(tmp_path / "outside", json.dumps(GOOD))
    (tmp_path / "runs" / "arena").mkdir(parents=True)
    (tmp_path / "runs/arena/results.json").symlink_to(tmp_path / "outside/results.json")
    assert find_ratings(tmp_path / "runs") == {}


def test_a_run_is_the_same_player_under_any_path():
    here = os.path.abspath("runs/go")
    assert player_key("alphazero:runs/go?simulations=9") == (
        player_key(f"alphazero:{here}?simulations=9")
    )
    assert player_key("alphazero:pretrained") == "alphazero:pretrained"
    assert player_key("gtp:runs/go") == "gtp:runs/go"
