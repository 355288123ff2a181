"""Callback that can stop long computations."""

from typing import Protocol


class Poll(Protocol):
    """A function that long computations call repeatedly; its exceptions stop them.

    alone: whether processes that share the computation may call it here different
        numbers of times.
    """

    def __call__(self, *, alone: bool = False) -> object: ...  # noqa: D102


def no_poll(*, alone: bool = False) -> None:
    """A `Poll` that never stops the computation."""
