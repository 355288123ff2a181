"""Executors run a session's computation, here or in a thread, and call back with its
outcome."""

import collections
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
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
                outcome: Future[MoveDecision | None] = Future()
                try:
                    outcome.set_result(work())
                except Exception as error:
                    outcome.set_exception(error)
                then(outcome)
        finally:
            self._waiting.clear()
            self._is_working = False


class BackgroundExecutor:
    """Runs functions one after the other in a background thread.

    Args:
        post: schedules a function in the interface's thread; thread-safe.
    """

    def __init__(self, post: Callable[[Callable[[], None]], object]):
        self._post = post
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="azjax-player")
        self._last: Future[MoveDecision | None] | None = None

    def __call__(self, work: Work, then: Then) -> None:
        """Starts `work`, and passes its future to `then` in the interface's thread."""
        self._last = self._executor.submit(work)
        self._last.add_done_callback(lambda outcome: self._post(lambda: then(outcome)))

    def close(self, seconds: float) -> bool:
        """Stops accepting work; returns whether running work ended within `seconds`.

        Python's exit waits for work that has not.
        """
        self._executor.shutdown(wait=False, cancel_futures=True)
        return self._last is None or not wait([self._last], timeout=seconds).not_done


class CallbackQueue:
    """Callbacks that wait for the interface's thread.

    background: executor that posts its callbacks here.
    """

    def __init__(self):
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.background = BackgroundExecutor(self._posted.put)

    def run_next(self) -> None:
        """Waits for the next callback and calls it."""
        self._posted.get()()

    def run_if_ready(self) -> None:
        """Calls the next callback if there is one."""
        if not self._posted.empty():
            self._posted.get()()
