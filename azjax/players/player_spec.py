"""Player strings, `KIND:ARGUMENT?NAME=VALUE&NAME=VALUE`, and names of players."""

import dataclasses
import math
import os
import re
import shlex
from collections.abc import Container, Mapping
from urllib.parse import parse_qsl

from azjax.checks import did_you_mean, quoted
from azjax.games import Game
from azjax.networks import Parts

_MAX_DIGITS = 7
_NAME = re.compile(r"([\w.+-]+)=")


@dataclasses.dataclass(frozen=True)
class PlayerSpec:
    """A parsed player string and the arguments passed with it.

    text: the whole string, for messages.
    kind: the part before the colon.
    argument: the part after the colon; empty without a colon.
    settings: the values by name.
    parts: the user's own modules, for a network made with them.
    """

    text: str
    kind: str
    argument: str
    settings: Mapping[str, str]
    parts: Parts | None = None

    def int_setting(self, name: str, low: int, high: int, default: int) -> int:
        """Returns an int setting."""
        return self._parse_int(name, self.settings.get(name, str(default)), low, high)

    def int_argument(self, name: str, low: int, high: int) -> int:
        """Returns the argument as an int; `name` is its name in messages."""
        return self._parse_int(name, self.argument, low, high)

    def float_setting(
        self, name: str, low: float, high: float, default: float
    ) -> float:
        """Returns a float setting."""
        text = self.settings.get(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(
                f"{name} must be a number from {low:g} to {high:g} in player "
                f"{quoted(self.text)}: {quoted(text)}"
            )
        return value

    def choice_setting(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """Returns a setting that is one of the allowed words."""
        value = self.settings.get(name, default)
        if value not in allowed:
            raise ValueError(
                f"{name} must be {' or '.join(allowed)} in player {quoted(self.text)}: "
                f"{quoted(value)}"
            )
        return value

    def bool_setting(self, name: str, default: bool) -> bool:
        """Returns a setting that is `true` or `false`."""
        return (
            self.choice_setting(name, ("true", "false"), str(default).lower()) == "true"
        )

    def _parse_int(self, name: str, text: str, low: int, high: int) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
        if not is_number or not low <= int(text) <= high:
            raise ValueError(
                f"{name} must be a whole number from {low} to {high} in player "
                f"{quoted(self.text)}: {quoted(text)}"
            )
        return int(text)


def parse_settings(
    text: str, query: str, allowed: tuple[str, ...] | None
) -> dict[str, str]:
    """Parses `NAME=VALUE&NAME=VALUE`.

    Args:
        text: the whole player string, for messages.
        query: the part after the question mark.
        allowed: the settings of this player kind; None: any.
    """
    given = parse_qsl(query, keep_blank_values=True)
    settings = dict(given)
    for key in settings:
        if allowed is not None and key not in allowed:
            known = (
                f"its settings are {', '.join(allowed)}" if allowed else "it has none"
            )
            close = did_you_mean(key, allowed)
            raise ValueError(
                f"player {quoted(text)} has no setting {quoted(key)}; {known}{close}"
            )
    if len(settings) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"player {quoted(text)} has the setting {quoted(twice)} twice")
    return settings


def require_game(spec: PlayerSpec, game: Game | None) -> Game:
    """Returns the game."""
    if game is None:
        raise ValueError(f"the player {quoted(spec.text)} requires a game")
    return game


def split_name(text: str) -> tuple[str | None, str]:
    """Splits `NAME=PLAYER`; the name is None if there is none."""
    found = _NAME.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)


def unused_name(name: str, used: Container[str]) -> str:
    """Returns the name, with a number appended if it is already used."""
    unused, number = name, 1
    while unused in used:
        number += 1
        unused = f"{name}#{number}"
    return unused


def public_name(spec: str) -> str:
    """Returns a player string without directories and without a program's arguments.

    `gtp:bin/gnugo --mode gtp` becomes `gnugo`, `network:old/runs/go` becomes
    `network:go`.
    """
    kind, colon, argument = spec.partition(":")
    if kind == "uci":
        argument = argument.partition("?")[0]
    if kind in ("gtp", "uci"):
        return os.path.basename(shlex.split(argument)[0])
    if not colon:
        return spec
    argument, mark, settings = argument.partition("?")
    return f"{kind}:{os.path.basename(os.path.abspath(argument))}{mark}{settings}"
