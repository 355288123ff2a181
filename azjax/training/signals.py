"""Stopping a run from outside without losing anything."""

import signal
import types
from typing import Any, Self


class StopSignals:
    """A context in which SIGINT and SIGTERM ask for a stop instead of ending the
    process. A second one ends it at once.

    stopping: whether a signal has come.
    """

    def __init__(self) -> None:
        self.stopping = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._stop)
        except ValueError:
            pass  # not the main thread, which alone receives signals
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _stop(self, number: int, frame: types.FrameType | None) -> None:
        del number, frame
        self.stopping = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()
