"""Checks of settings and arguments.

A failed check raises a one-line ValueError: the name, the allowed values, and the
value, truncated to 80 characters.
"""

import sys
from collections.abc import Sequence
from typing import TypeGuard


def is_int(value: object) -> TypeGuard[int]:
    """Returns whether a value is an int; bools and NumPy integers do not count."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a value is an int or a float; NaN counts, bools do not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_int(name: str, value: object, low: int, high: int | None = None) -> None:
    """Checks an int.

    Raises:
        ValueError: it is not an int from `low` to `high`.
    """
    if not is_int(value) or value < low or (high is not None and value > high):
        limits = f">= {low}" if high is None else f"from {low} to {high}"
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
    """Checks a finite number within the range of a float.

    Raises:
        ValueError: it is not a finite number within the given limits.
    """
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
    """Checks a bool.

    Raises:
        ValueError: it is not a bool.
    """
    if not isinstance(value, bool):
        _refuse(name, "True or False", value)


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Checks that a string is allowed.

    Raises:
        ValueError: it is not an allowed string.
    """
    if value not in allowed:
        _refuse(name, " or ".join(allowed), value)


def check_seed(name: str, value: object) -> None:
    """Checks a seed of `jax.random.key`.

    Raises:
        ValueError: it is not an int from 0 to 2**32 - 1.
    """
    if not is_int(value) or not 0 <= value < 2**32:
        _refuse(name, "an int from 0 to 2**32 - 1", value)


def _refuse(name: str, allowed: str, value: object) -> None:
    raise ValueError(f"{name} must be {allowed}: {repr(value)[:80]}")
