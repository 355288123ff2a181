"""Old names of `azjax.settings` and `azjax.text`."""

from typing import Annotated

from azjax.settings import MAX_INT, Seed, Within, check, check_int, is_int, is_number
from azjax.text import did_you_mean, printable, quoted

__all__ = [
    "MAX_INT",
    "check_bool",
    "check_int",
    "check_number",
    "check_seed",
    "did_you_mean",
    "is_int",
    "is_number",
    "printable",
    "quoted",
]


def check_number(
    name: str, value: object, *, above=None, at_least=None, below=None, at_most=None
) -> None:
    """Checks a number."""
    within = Within(at_least, at_most, gt=above, lt=below)
    check(name, value, Annotated[float, within])


def check_bool(name: str, value: object) -> None:
    """Checks a bool."""
    check(name, value, bool)


def check_seed(name: str, value: object) -> None:
    """Checks a seed."""
    check(name, value, Seed)
