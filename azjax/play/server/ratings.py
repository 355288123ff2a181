"""Ratings of players, from the tournaments that `azjax arena --save` stored."""

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from azjax.checks import is_number
from azjax.play.server.runs import read_inside
from azjax.training.run_directory import CONFIG_FILE

RESULTS_FILE = "results.json"
MAX_BYTES = 2**20  # of a file of results
MAX_PLAYERS = 1000  # of a tournament
MAX_LETTERS = 2000  # of a player's or a game's name
MAX_RATING = 100_000  # Elo
KEPT_TOURNAMENTS = 200  # the newest ones
PATH_KINDS = ("alphazero", "network", "q_learning")  # loaded from a directory


class Tournament(NamedTuple):
    """Ratings of one tournament.

    game: text for `games.make`.
    ratings: Elo ratings by `player_key`.
    """

    game: str
    ratings: Mapping[str, float]


def find_ratings(directory: Path) -> dict[str, Mapping[str, float]]:
    """Returns the ratings of the newest tournament of each game, of the newest
    `KEPT_TOURNAMENTS`.

    Ratings of different tournaments are not comparable, so only one is used.

    Args:
        directory: contains the directories of the tournaments; other directories, such
            as runs, are ignored.

    Returns:
        Elo ratings by `repr(game)` and by `player_key`.
    """
    try:
        paths = list(directory.iterdir())
    except OSError:
        return {}
    found = []
    for path in paths:
        # An untrusted run must not set the ratings of this server.
        if os.path.lexists(path / CONFIG_FILE):
            continue
        try:
            status = (path / RESULTS_FILE).lstat()
        except (OSError, ValueError):
            continue
        version = (status.st_mtime_ns, status.st_ino, status.st_size)
        found.append((version, str(path)))
    ratings = {}
    for version, path in sorted(found)[-KEPT_TOURNAMENTS:]:
        tournament = _read(path, *version)
        if tournament is not None:
            ratings[tournament.game] = tournament.ratings
    return ratings


def player_key(text: str) -> str:
    """Returns a player's text with an absolute path, for comparison."""
    kind, _, argument = text.partition(":")
    path, mark, settings = argument.partition("?")
    if kind not in PATH_KINDS or os.sep not in path:
        return text
    return f"{kind}:{os.path.abspath(path)}{mark}{settings}"


@functools.lru_cache(KEPT_TOURNAMENTS)
def _read(path: str, *version: int) -> Tournament | None:
    """Reads the results in a directory; None if they are not a tournament's.

    Args:
        path: the directory.
        *version: numbers that change with the results.
    """
    del version
    try:
        return _parse(json.loads(read_inside(Path(path), RESULTS_FILE, MAX_BYTES)))
    except (OSError, ValueError, LookupError, RecursionError):
        return None
    except (TypeError, AttributeError, OverflowError):  # malformed
        return None


def _parse(results: Any) -> Tournament:
    game, players = results["game"], results["players"]
    if not isinstance(players, list) or len(players) > MAX_PLAYERS:
        raise ValueError(f"a tournament has at most {MAX_PLAYERS} players")
    ratings = {
        player_key(_text(player["player"])): _rating(player["elo"])
        for player in players
    }
    return Tournament(_text(game), ratings)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_LETTERS:
        raise ValueError(f"a name must be a string of at most {MAX_LETTERS} characters")
    return value


def _rating(value: Any) -> float:
    if not is_number(value):
        raise ValueError("a rating must be a number")
    if not abs(value) <= MAX_RATING:
        raise ValueError(f"a rating must be from -{MAX_RATING} to {MAX_RATING}")
    return float(value)
