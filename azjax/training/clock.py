"""The clock of runs, which stands still while JAX compiles."""

import collections
import functools
import threading
import time
from typing import Any, NamedTuple

import jax

# Tracing, lowering, and compiling or reading the compilation cache.
_EVENTS = "/jax/core/compile/"
_SPANS = 1000  # of compilation, of those that a longer one may include


class Moment(NamedTuple):
    """A time; differences of two are meaningful.

    seconds: what the clock of runs shows.
    compiling: seconds in which JAX compiled; with `seconds`, the time of a usual clock.
    """

    seconds: float
    compiling: float

    def since(self, start: "Moment") -> "Moment":
        """Returns the time from `start` to this one."""
        return Moment(self.seconds - start.seconds, self.compiling - start.compiling)


def now() -> Moment:
    """Returns the present. A compilation counts from its end, and only if `now` was
    called before it."""
    compiling = _compilation().seconds
    return Moment(time.monotonic() - compiling, compiling)


@functools.cache
def _compilation() -> "Compilation":
    found = Compilation()
    jax.monitoring.register_event_duration_secs_listener(found.add)
    return found


class Compilation:
    """The seconds in which JAX compiled, in any thread."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = time.monotonic()
        self._lock = threading.Lock()
        # Start and end; disjoint, in order of time.
        self._spans = collections.deque[tuple[float, float]](maxlen=_SPANS)

    def add(self, event: str, duration_secs: float, **_: Any) -> None:
        """Adds an event of JAX that ends now; what overlaps with others counts once."""
        if not event.startswith(_EVENTS):
            return
        with self._lock:
            end = time.monotonic()
            start = max(end - duration_secs, self._began)
            seconds = self.seconds
            while self._spans and self._spans[-1][1] > start:
                first, last = self._spans.pop()
                start, seconds = min(start, first), seconds - (last - first)
            self._spans.append((start, end))
            self.seconds = seconds + (end - start)
