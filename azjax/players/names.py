"""Names of players: `NAME=PLAYER`, and names that are safe to publish."""

import os
import re
import shlex
from collections.abc import Container

_NAME = re.compile(r"([\w.+-]+)=")


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
