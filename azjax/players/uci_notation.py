"""Moves, scores and options as UCI, the Universal Chess Interface, writes them.

`Chess.action_to_text` writes moves: `e2e4`, `e1g1` for castling, `e7e8q`.

Scores are for the player to move; see `azjax.games.chess.scores`.
"""

import re
from typing import NamedTuple

import numpy as np

from azjax.checks import quoted
from azjax.games import Game, State
from azjax.games.chess.scores import expected_result
from azjax.games.core import compiled_mask

_SCORE = re.compile(r"info .*\bscore (?P<unit>cp|mate) (?P<number>[+-]?\d{1,9})\b.*")
# Of another variation than the best one; a bound, which may be far from the score.
_OTHER_LINE = re.compile(r".*\b(multipv (?!1\b)|upperbound\b|lowerbound\b)")
_OPTION = re.compile(r"option name (?P<name>.+?) type (?P<type>\w+)(?P<rest>.*)")
_LIMIT = re.compile(r"\b(min|max) (-?\d+)")
_MAX_DIGITS = 18


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


class UciOption(NamedTuple):
    """An option.

    name: its name.
    type: `check`, `spin` (an int), `combo` (a choice), `button` or `string`.
    low, high: limits of a spin, None if not declared.
    choices: values of a combo.
    """

    name: str
    type: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()


def parse_option(line: str) -> UciOption | None:
    """Parses `option name ... type ...`; returns None if the line is something else."""
    found = _OPTION.fullmatch(line.strip())
    if found is None:
        return None
    limits = {
        key: int(digits)
        for key, digits in _LIMIT.findall(found["rest"])
        if len(digits) <= _MAX_DIGITS
    }
    choices = tuple(part.strip() for part in found["rest"].split(" var ")[1:])
    return UciOption(
        found["name"], found["type"], limits.get("min"), limits.get("max"), choices
    )


def setoption(option: UciOption, value: str) -> str:
    """Returns the command that sets an option; a button takes an empty value.

    Raises:
        ValueError: the value is not allowed; the message is `NAME must be ...`.
    """
    match option.type:
        case "check":
            allowed, is_allowed = "true or false", value in ("true", "false")
        case "spin":
            low, high = option.low, option.high
            allowed = "an int"
            if low is not None and high is not None:
                allowed = f"an int from {low} to {high}"
            is_int = re.fullmatch(r"-?\d{1,18}", value, re.ASCII) is not None
            is_allowed = is_int and (
                (low is None or low <= int(value))
                and (high is None or int(value) <= high)
            )
        case "combo":
            allowed = " or ".join(option.choices)
            is_allowed = value in option.choices
        case "button":
            allowed, is_allowed = "empty", not value
        case _:
            allowed, is_allowed = "a text", True
    if not is_allowed:
        raise ValueError(f"{option.name} must be {allowed}: {quoted(value)}")
    command = f"setoption name {option.name}"
    return command if option.type == "button" else f"{command} value {value}"
