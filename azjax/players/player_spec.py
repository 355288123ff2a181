"""Player strings, `KIND:ARGUMENT?NAME=VALUE&NAME=VALUE`, and names of players."""

import contextlib
import dataclasses
import os
import re
import shlex
import typing
from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import parse_qsl

from azjax.games import Game
from azjax.networks import CustomModules
from azjax.text import did_you_mean, quoted

_MAX_DIGITS = 7
_NAME = re.compile(r"([\w.+-]+)=")


@dataclasses.dataclass(frozen=True)
class PlayerSpec:
    """A parsed player string and the arguments passed with it.

    text: the whole string, for messages.
    argument: the part after the colon; empty without a colon.
    settings: the values by name.
    modules: the user's own modules, for a network made with them.
    """

    text: str
    argument: str
    settings: Mapping[str, Any]
    modules: CustomModules | None = None


def parse_value(player: str, name: str, text: str, kind: Any) -> Any:
    """Parses a value in a player string.

    Args:
        player: the whole string, for messages.
        name: of the value, for messages.
        text: the value.
        kind: its type: an int or a float `Within` limits, a bool, a tuple of words, or
            a string, which is returned as it is.
    """
    if kind is str:
        return text
    if kind is bool or isinstance(kind, tuple):
        words = ("true", "false") if kind is bool else kind
        if text in words:
            return text == "true" if kind is bool else text
        allowed = " or ".join(words)
    else:
        number, within = typing.get_args(kind)
        is_whole = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
        with contextlib.suppress(ValueError):
            if (is_whole or number is float) and within.allows(number(text)):
                return number(text)
        allowed = f"a {'number' if number is float else 'whole number'} {within}"
    raise ValueError(
        f"{name} must be {allowed} in player {quoted(player)}: {quoted(text)}"
    )


def parse_settings(
    player: str, query: str, kinds: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Parses `NAME=VALUE&NAME=VALUE`.

    Args:
        player: the whole player string, for messages.
        query: the part after the question mark.
        kinds: the types of the settings of this player kind, as of `parse_value`; None:
            any setting, as a string.
    """
    given = parse_qsl(query, keep_blank_values=True)
    settings = dict(given)
    for name in settings:
        if kinds is not None and name not in kinds:
            known = f"its settings are {', '.join(kinds)}" if kinds else "it has none"
            raise ValueError(
                f"player {quoted(player)} has no setting {quoted(name)}; {known}"
                f"{did_you_mean(name, kinds)}"
            )
    if len(settings) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"player {quoted(player)} has the setting {quoted(twice)} twice"
        )
    return {
        name: parse_value(player, name, text, kinds[name] if kinds else str)
        for name, text in settings.items()
    }


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
