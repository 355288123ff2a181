"""The options that a UCI engine declares, and checks of their values."""

import re
from typing import NamedTuple

from azjax.checks import quoted

_OPTION = re.compile(r"option name (?P<name>.+?) type (?P<type>\w+)(?P<rest>.*)")
_LIMIT = re.compile(r"\b(min|max) (-?\d+)")
_MAX_DIGITS = 18


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
