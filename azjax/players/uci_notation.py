"""Moves and scores of chess as UCI, the Universal Chess Interface, writes them.

`Chess.action_to_text` writes moves: `e2e4`, `e1g1` for castling, `e7e8q`.

Scores are for the player to move; see `azjax.games.chess.scores`.
"""

import re

import numpy as np

from azjax.games import Game, State
from azjax.games.chess.scores import expected_result
from azjax.games.core import compiled_mask

_SCORE = re.compile(r"info .*\bscore (?P<unit>cp|mate) (?P<number>[+-]?\d{1,9})\b.*")
# Of another variation than the best one; a bound, which may be far from the score.
_OTHER_LINE = re.compile(r".*\b(multipv (?!1\b)|upperbound\b|lowerbound\b)")


def score_value(line: str, previous: float | None) -> float | None:
    """Returns the expected result in [-1, 1] of an `info` line with a score.

    Args:
        line: a line of an engine.
        previous: returned for a line without score, with a bound in place of one, or
            of another variation than the best one.
    """
    found = _SCORE.fullmatch(line)
    if found is None or _OTHER_LINE.match(line):
        return previous
    number = int(found["number"])
    if found["unit"] == "mate":
        return 1.0 if number > 0 else -1.0
    return expected_result(number)


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
