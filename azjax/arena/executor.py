"""How a seat is given time to think."""

import collections
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from azjax.players import MoveDecision

Work = Callable[[], MoveDecision | None]
Then = Callable[["Future[MoveDecision | None]"], None]


class Executor(Protocol):
    """Does some work, and hands its outcome to what comes then."""

    def __call__(self, work: Work, then: Then) -> None: ...  # noqa: D102


class InlineExecutor:
    """Works before it returns, one thing after the other: whatever comes of some work
    waits until that is done, so that a long game is no deep recursion."""

    def __init__(self):
        self._waiting: collections.deque[tuple[Work, Then]] = collections.deque()
        self._is_working = False

    def __call__(self, work: Work, then: Then) -> None:
        """Works, and does all that comes of it."""
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
