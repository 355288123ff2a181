"""What players are called: as `NAME=PLAYER` says, or so that strangers may know it."""

import os
import re
import shlex
from collections.abc import Container

_NAME = re.compile(r"([\w.+-]+)=")


def split_name(text: str) -> tuple[str | None, str]:
    """Takes `NAME=PLAYER` apart; the name is None where there is none."""
    found = _NAME.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)


def unused_name(name: str, used: Container[str]) -> str:
    """Returns a name, with a number if somebody has it already."""
    unused, number = name, 1
    while unused in used:
        number += 1
        unused = f"{name}#{number}"
    return unused


def public_name(spec: str) -> str:
    """Returns the text of a player without directories, and of a program without its
    arguments: what may be shown to strangers.

    `gtp:bin/gnugo --mode gtp` is `gnugo`, and `network:old/runs/go` is
    `network:go`.
    """
    kind, colon, argument = spec.partition(":")
    if kind == "gtp":
        return os.path.basename(shlex.split(argument)[0])
    if not colon:
        return spec
    argument, mark, settings = argument.partition("?")
    return f"{kind}:{os.path.basename(os.path.abspath(argument))}{mark}{settings}"
