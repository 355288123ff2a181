"""Thread pools that keep the event loop free."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class ThreadPools:
    """Thread pools for functions of milliseconds, of seconds and of minutes.

    Used by the event loop's thread only.

    Args:
        num_long: number of functions that may take minutes.
    """

    def __init__(self, num_long: int = 1) -> None:
        self._quick = ThreadPoolExecutor(4, "azjax-quick")
        self._slow = ThreadPoolExecutor(8, "azjax-slow")
        self._long = ThreadPoolExecutor(num_long, "azjax-long")
        self._running: dict[Hashable, asyncio.Future[Any]] = {}

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Returns the result of a function that takes milliseconds."""
        return await _start(self._quick, function, *args)

    async def run_shared(
        self, key: Hashable, function: Callable[..., T], *args: Any
    ) -> T:
        """Returns the result of a function that takes seconds; concurrent calls with
        the same key share one execution."""
        task = self._running.get(key)
        if task is None:
            task = _start(self._slow, function, *args)
            self._running[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        # A cancelled caller must not cancel the others.
        return await asyncio.shield(task)

    async def run_long(self, function: Callable[..., T], *args: Any) -> T:
        """Returns the result of a function that may take minutes."""
        return await _start(self._long, function, *args)

    def _end(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # marks it as retrieved if all callers were cancelled

    def close(self) -> None:
        """Cancels the functions that have not started."""
        for pool in (self._quick, self._slow, self._long):
            pool.shutdown(wait=False, cancel_futures=True)


def _start(
    pool: ThreadPoolExecutor, function: Callable[..., T], *args: Any
) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(pool, function, *args)
