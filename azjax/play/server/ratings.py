"""Ratings of players, as `azjax arena --save` has written them."""

import functools
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

RESULTS_FILE = "results.json"
MAX_BYTES = 2**20  # of a file of results
PATH_KINDS = ("alphazero", "network", "q_learning")  # players in a directory


class Tournament(NamedTuple):
    """Ratings of one tournament.

    game: the text of the game.
    ratings: Elo ratings by `player_key`.
    """

    game: str
    ratings: Mapping[str, float]


def find_ratings(directory: Path) -> dict[str, Mapping[str, float]]:
    """Returns the ratings of the newest tournament of each game.

    Ratings of different tournaments cannot be compared, hence one for each game.

    Args:
        directory: in whose directories tournaments were saved; anything else there is
            left out.

    Returns:
        Elo ratings by the game's text and by `player_key`.
    """
    try:
        paths = [path / RESULTS_FILE for path in directory.iterdir()]
    except OSError:
        return {}
    found = []
    for path in paths:
        try:
            status = path.lstat()
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES:
            found.append((status.st_mtime_ns, str(path)))
    ratings = {}
    for time, path in sorted(found):
        tournament = _read(path, time)
        if tournament is not None:
            ratings[tournament.game] = tournament.ratings
    return ratings


def player_key(text: str) -> str:
    """Returns a player's text with an absolute path, to compare it with others."""
    kind, _, argument = text.partition(":")
    path, mark, settings = argument.partition("?")
    if kind not in PATH_KINDS or os.sep not in path:
        return text
    return f"{kind}:{os.path.abspath(path)}{mark}{settings}"


@functools.lru_cache(maxsize=100)
def _read(path: str, time: int) -> Tournament | None:
    """Reads a tournament; None if it is none. `time` tells a newer file from an older
    one."""
    del time
    try:
        with open(path, "rb") as file:
            results = json.loads(file.read(MAX_BYTES + 1))
        game, players = results["game"], results["players"]
        ratings = {
            player_key(player["player"]): _number(player["elo"]) for player in players
        }
    except (OSError, ValueError, LookupError, RecursionError):
        return None
    except (TypeError, AttributeError, OverflowError):  # of another form
        return None
    return Tournament(game, ratings) if isinstance(game, str) else None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a rating must be a number: {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a rating must be finite: {value!r}")
    return number
