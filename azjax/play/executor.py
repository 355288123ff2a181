"""Executors: run a session's computation and pass its outcome to a callback."""

import collections
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from azjax.players import MoveDecision

Work = Callable[[], MoveDecision | None]
Then = Callable[["Future[MoveDecision | None]"], None]


class Executor(Protocol):
    """Runs `work` and calls `then` with its outcome."""

    def __call__(self, work: Work, then: Then) -> None: ...  # noqa: D102


class InlineExecutor:
    """Runs work in the calling thread, before the call returns.

    Work that is submitted from a callback is queued until the callback returns, so that
    a long game does not recurse.
    """

    def __init__(self):
        self._waiting: collections.deque[tuple[Work, Then]] = collections.deque()
        self._is_working = False

    def __call__(self, work: Work, then: Then) -> None:
        """Runs the work, its callback and all work that the callback submits."""
        self._waiting.append((work, then))
        if self._is_working:
            return
        self._is_working = True
        try:
            while self._waiting:
                work, then = self._waiting.popleft()
                then(_outcome(work))
        finally:
            self._waiting.clear()
            self._is_working = False


def _outcome(work: Work) -> "Future[MoveDecision | None]":
    outcome: Future[MoveDecision | None] = Future()
    try:
        outcome.set_result(work())
    except Exception as error:
        outcome.set_exception(error)
    return outcome
