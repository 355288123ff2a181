"""Moves and scores of chess as UCI, the Universal Chess Interface, writes them.

`Chess.action_to_text` writes moves: `e2e4`, `e1g1` for castling, `e7e8q`.

The score in centipawns is `400 log10((1 + v) / (1 - v))` for the expected result v in
[-1, 1] of the player to move, limited to 2000: a score of 100 is an expected score of
64% (https://www.chessprogramming.org/Pawn_Advantage,_Win_Percentage,_and_Elo). It is no
count of material.
"""

import math
import re

import numpy as np

from azjax.games import Game, State
from azjax.games.core import compiled_mask

MAX_CENTIPAWNS = 2000
_MAX_VALUE = math.tanh(MAX_CENTIPAWNS / 800 * math.log(10))
_SCORE = re.compile(r"info .*\bscore (?P<unit>cp|mate) (?P<number>[+-]?\d{1,9})\b.*")
_OTHER_LINE = re.compile(r".*\bmultipv (?!1\b)")


def centipawns(value: float) -> int:
    """Returns the score of an expected result in [-1, 1]."""
    value = min(max(value, -_MAX_VALUE), _MAX_VALUE)
    return round(400 * math.log10((1 + value) / (1 - value)))


def score_value(line: str, previous: float | None) -> float | None:
    """Returns the expected result in [-1, 1] of an `info` line with a score.

    Args:
        line: a line of an engine.
        previous: returned for a line without score, or of another variation than the
            best one.
    """
    found = _SCORE.fullmatch(line)
    if found is None or _OTHER_LINE.match(line):
        return previous
    number = int(found["number"])
    if found["unit"] == "mate":
        return 1.0 if number > 0 else -1.0
    return math.tanh(number / 800 * math.log(10))


def read_move(game: Game, state: State, text: str) -> int:
    """Parses a move.

    A position that is drawn by the rules of `game` still has moves: a front end or a
    referee may continue such a game.

    Raises:
        ValueError: the text is not a legal move in this position.
    """
    for action in np.flatnonzero(compiled_mask(game, state)).tolist():
        if game.action_to_text(state, action) == text:
            return action
    raise ValueError(f"{text!r} is not a legal move")
