"""Parsing of the arguments of GTP commands."""

import math
from collections.abc import Sequence

from azjax.play.gtp.protocol import CommandError

COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
MAX_DIGITS = 7
SYNTAX_ERROR = "syntax error"


def word(words: Sequence[str], place: int) -> str:
    """Returns an argument by its place.

    Raises:
        CommandError: it is missing.
    """
    if place >= len(words):
        raise CommandError(SYNTAX_ERROR)
    return words[place]


def color(words: Sequence[str], place: int) -> int:
    """Returns the player of a color.

    Raises:
        CommandError: the argument is missing or not a color.
    """
    player = COLORS.get(word(words, place).lower())
    if player is None:
        raise CommandError(SYNTAX_ERROR)
    return player


def whole(words: Sequence[str], place: int) -> int:
    """Returns a non-negative integer.

    Raises:
        CommandError: the argument is missing or not such a number.
    """
    digits = word(words, place)
    if not digits.isdecimal() or len(digits) > MAX_DIGITS:
        raise CommandError(SYNTAX_ERROR)
    return int(digits)


def real(words: Sequence[str], place: int) -> float:
    """Returns a finite number.

    Raises:
        CommandError: the argument is missing or not such a number.
    """
    try:
        value = float(word(words, place))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CommandError(SYNTAX_ERROR)
    return value
