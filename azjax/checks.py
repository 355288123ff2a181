"""Checks of settings and arguments, and names and values in messages.

A failed check raises a one-line ValueError: the name, the allowed values, and the
value, cut to 80 characters.
"""

import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import TypeGuard

MAX_INT = 2**31 - 1  # counts and sizes become int32 in JAX


def is_int(value: object) -> TypeGuard[int]:
    """Returns whether a value is an int; bools and NumPy integers do not count."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a value is an int or a float; NaN counts, bools do not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_int(name: str, value: object, low: int, high: int = MAX_INT) -> None:
    """Checks an int."""
    if not is_int(value) or not low <= value <= high:
        limits = f"from {low} to {high}"
        if high >= MAX_INT:
            is_large = is_int(value) and value > high
            limits = f">= {low} and <= {high}" if is_large else f">= {low}"
        _refuse(name, f"an int {limits}", value)


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> None:
    """Checks a finite number within the range of a float."""
    is_within = (
        is_number(value)
        and abs(value) <= sys.float_info.max  # which excludes NaN
        and (above is None or value > above)
        and (at_least is None or value >= at_least)
        and (below is None or value < below)
        and (at_most is None or value <= at_most)
    )
    if is_within:
        return
    limits = ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
    texts = [f"{sign} {limit}" for sign, limit in limits if limit is not None]
    if at_least is not None and at_most is not None:
        texts = [f"from {at_least} to {at_most}"]
    kind = "a finite number" if below is None and at_most is None else "a number"
    _refuse(name, f"{kind} {' and '.join(texts)}", value)


def check_bool(name: str, value: object) -> None:
    """Checks a bool."""
    if not isinstance(value, bool):
        _refuse(name, "True or False", value)


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Checks that a string is allowed."""
    if value not in allowed:
        _refuse(name, " or ".join(allowed), value)


def check_seed(name: str, value: object) -> None:
    """Checks a seed of `jax.random.key`."""
    if not is_int(value) or not 0 <= value < 2**32:
        _refuse(name, "an int from 0 to 2**32 - 1", value)


def quoted(value: object, most: int = 80) -> str:
    """Returns the `repr` of a value of any origin, cut to `most` characters, for a
    message."""
    try:
        text = repr(value[: most + 1] if isinstance(value, str | bytes) else value)
    except (ValueError, RecursionError):  # an int of more than 4,300 digits
        text = f"a number of {value.bit_length()} bits" if is_int(value) else "?"
    return text if len(text) <= most else f"{text[:most]}..."


def printable(text: str, most: int | None = None) -> str:
    """Returns a text of any origin as one line without control characters, which could
    manipulate a terminal; cut to `most` characters."""
    if most is not None and len(text) > most:
        text = f"{text[:most]}..."
    text = text.replace("\n", " ").replace("\t", " ")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean NAME?` for the known name that is closest, an empty text
    where none is close."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _refuse(name: str, allowed: str, value: object) -> None:
    raise ValueError(f"{name} must be {allowed}: {quoted(value)}")
