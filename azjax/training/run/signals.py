"""Stops a run on a signal, after saving it."""

import contextlib
import contextvars
import os
import signal
import socket
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, Self

ANNOUNCEMENT = "stopping and saving as soon as possible; again to stop now"
GRACE = 1.0  # for Python's handling of a second signal (seconds)
_NAMES = ("SIGINT", "SIGTERM", "SIGBREAK")  # where the system has them

_exits_on_second = contextvars.ContextVar("exits_on_second", default=False)


@contextlib.contextmanager
def exit_on_second_signal() -> Iterator[None]:
    """A context in which a second signal ends the process even while XLA computes.

    Python handles signals only between instructions. A notebook waits for that, because
    it has more state to lose than a run with its checkpoints.
    """
    token = _exits_on_second.set(True)
    try:
        yield
    finally:
        _exits_on_second.reset(token)


class StopSignals:
    """A context in which SIGINT and SIGTERM request a stop. A second signal has its
    previous effect.

    report: called in another thread when a stop is requested.
    leave: restores the terminal before the process ends.
    stopping: whether a stop is requested.
    """

    def __init__(self, report: Callable[[str], None], leave: Callable[[], None]):
        self.stopping = False
        self._report, self._leave = report, leave
        self._exits_on_second = _exits_on_second.get()
        self._previous: dict[int, Any] = {}
        self._received = self._handled = 0
        self._announced, self._ending = threading.Lock(), threading.Event()

    def __enter__(self) -> Self:
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        try:
            for number in numbers:
                self._previous[number] = signal.signal(number, self._handle)
        except ValueError:
            return self  # only the main thread receives signals
        # Receives the signal's number even while the main thread computes.
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._wakeup_fd = signal.set_wakeup_fd(
            self._writer.fileno(), warn_on_full_buffer=False
        )
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if not self._previous:
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd)
        self._writer.close()
        self._thread.join()
        self._reader.close()

    def _watch(self) -> None:
        """Receives signals in a thread."""
        while number := self._reader.recv(1):
            if number[0] not in self._previous:
                continue
            self.stopping = True
            self._received += 1
            self._announce()
            is_second = self._received > 1 and self._exits_on_second
            if is_second and not self._ending.wait(GRACE):
                with contextlib.suppress(Exception):
                    self._leave()
                os._exit(128 + number[0])

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        """Handles one or several signals in the main thread."""
        self.stopping = True
        self._handled += 1
        if max(self._handled, self._received) == 1:
            # In a thread, because the main thread may be printing.
            threading.Thread(target=self._announce, daemon=True).start()
            return
        self._ending.set()
        previous = self._previous[number]
        if callable(previous):
            previous(number, frame)
        elif previous == signal.SIG_DFL:
            signal.signal(number, previous)
            signal.raise_signal(number)

    def _announce(self) -> None:
        if self._announced.acquire(blocking=False):
            self._report(ANNOUNCEMENT)
