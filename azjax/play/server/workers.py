"""Threads for what takes more than a moment, so that no visitor waits for another's."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Workers:
    """Two kinds of threads: for what takes milliseconds, and for what takes seconds.

    Used by the thread that serves the visitors.
    """

    def __init__(self) -> None:
        self._quick = ThreadPoolExecutor(4, "azjax-quick")
        self._slow = ThreadPoolExecutor(8, "azjax-slow")
        self._under_way: dict[Hashable, asyncio.Future[Any]] = {}

    async def do(self, function: Callable[..., T], *args: Any) -> T:
        """Returns what a function returns within milliseconds."""
        return await _run(self._quick, function, *args)

    async def do_once(self, key: Hashable, function: Callable[..., T], *args: Any) -> T:
        """Returns what a function returns after seconds; those who ask for the same
        meanwhile get the same."""
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.ensure_future(_run(self._slow, function, *args))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        # Who leaves takes nothing away from the others.
        return await asyncio.shield(task)

    def _end(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # is looked at, should all have left who asked

    def close(self) -> None:
        """Begins nothing more."""
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)


async def _run(pool: ThreadPoolExecutor, function: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, function, *args)
