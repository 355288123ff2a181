"""The clock of runs, which stands still while they wait for compilation."""

import collections
import contextlib
import functools
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

# Tracing, lowering, and compiling or reading the compilation cache.
_EVENTS = "/jax/core/compile/"
_SPANS = 1000  # of compilation, of those that a longer one may include


class Moment(NamedTuple):
    """A time; differences of two are meaningful.

    seconds: what the clock of runs shows.
    compiling: seconds in which the thread waited for compilation; with `seconds`, the
        time of a usual clock.
    """

    seconds: float
    compiling: float

    def since(self, start: "Moment") -> "Moment":
        """Returns the time from `start` to this one."""
        return Moment(self.seconds - start.seconds, self.compiling - start.compiling)


def now() -> Moment:
    """Returns the present, by the clock of the calling thread. A compilation counts
    from its end, and only if `now` was called before it."""
    compiling = _compilation().seconds
    return Moment(time.monotonic() - compiling, compiling)


@contextlib.contextmanager
def stopped() -> Iterator[None]:
    """Stops the calling thread's clock: it waits for programs that others compile."""
    started = time.monotonic()
    try:
        yield
    finally:
        _compilation().add(_EVENTS, time.monotonic() - started)


@functools.cache
def _compilation() -> "Compilation":
    found = Compilation()
    jax.monitoring.register_event_duration_secs_listener(found.add)
    return found


class Compilation(threading.local):
    """The seconds in which the calling thread compiled, or waited for others."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = time.monotonic()
        # Start and end; disjoint, in order of time.
        self._spans = collections.deque[tuple[float, float]](maxlen=_SPANS)

    def add(self, event: str, duration_secs: float, **_: Any) -> None:
        """Adds an event of JAX that ends now; what overlaps with others counts once."""
        if not event.startswith(_EVENTS):
            return
        end = time.monotonic()
        start = max(end - duration_secs, self._began)
        self.seconds += end - start
        while self._spans and self._spans[-1][1] > start:
            first, last = self._spans.pop()
            self.seconds -= last - max(first, start)
            start = min(start, first)
        self._spans.append((start, end))
