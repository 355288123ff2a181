"""Where seats think, so that an interface need not wait for them."""

import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from azjax.play.executor import Then, Work
from azjax.players import MoveDecision


class Background:
    """Works beside the interface's thread, at one thing after the other.

    Args:
        post: has a function called by the interface's thread; called by any thread.
    """

    def __init__(self, post: Callable[[Callable[[], None]], object]):
        self._post = post
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="azjax-thinks")
        self._last: Future[MoveDecision | None] | None = None

    def __call__(self, work: Work, then: Then) -> None:
        """Begins to work, and returns."""
        self._last = self._executor.submit(work)
        self._last.add_done_callback(
            lambda outcome: self._post(lambda: then(outcome))  # by the other thread
        )

    def close(self, seconds: float) -> bool:
        """Takes no more work, and returns whether all has ended within so many seconds.

        Python waits for what has not before it ends.
        """
        self._executor.shutdown(wait=False, cancel_futures=True)
        return self._last is None or not wait([self._last], timeout=seconds).not_done


class Pump:
    """Functions that the interface's thread is to call, when it gets round to it.

    background: works, and leaves here what comes then.
    """

    def __init__(self):
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.background = Background(self._posted.put)

    def wait(self) -> None:
        """Waits for the next function and calls it."""
        self._posted.get()()

    def call(self) -> None:
        """Calls the next function if there is one."""
        if not self._posted.empty():
            self._posted.get()()
