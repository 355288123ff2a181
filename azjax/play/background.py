"""A background thread for players, and callbacks for the interface's thread."""

import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from azjax.play.executor import Then, Work
from azjax.players import MoveDecision


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
