"""A function by which the caller of long work can end it."""

from typing import Protocol


class Poll(Protocol):
    """A function that long work calls now and then, and whose error ends the work.

    alone: whether processes that share the work may call it different numbers of times
        here.
    """

    def __call__(self, *, alone: bool = False) -> object: ...  # noqa: D102


def no_poll(*, alone: bool = False) -> None:
    """A `Poll` that lets the work go on."""
