"""Thoughts that visitors wait for, and the queues in which they stand."""

import collections
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from azjax.games import State
from azjax.play.server.limits import Limits
from azjax.players import MoveDecision

FAILED = "the server could not do this; try again in a moment"


def report(error: Exception) -> str:
    """Prints an unexpected error; returns the message for the visitor."""
    with contextlib.suppress(OSError, ValueError):  # the terminal was closed
        traceback.print_exception(error, file=sys.stderr)
    return FAILED


class Found(NamedTuple):
    """What was thought until now.

    thought: what the player would do.
    simulations: made so far.
    seconds: since it began; waiting and compiling do not count.
    """

    decision: MoveDecision
    simulations: int
    seconds: float


class Job:
    """A thought that somebody waits for; filled by a table's thread.

    found: what there is until now.
    error: why there will be nothing.
    stage: what is done before the thought begins, for the visitor to read.
    is_resigned: whether the player gives the game up.
    is_done: whether `found`, `error` or a resignation is the end of it.

    Args:
        state: the position, not a finished one.
        actions: that led there.
        simulations: to be made; 0 for players that do not search.
        notify: called by the table's thread when there is news.
        limits: for how long it may take, and how often there is news.
    """

    def __init__(
        self,
        state: State,
        actions: tuple[int, ...],
        simulations: int,
        notify: Callable[[], object],
        limits: Limits,
    ):
        self.state, self.actions, self.simulations = state, actions, simulations
        self.found: Found | None = None
        self.error: str | None = None
        self.stage: str | None = None
        self.is_resigned = self.is_done = False
        self.is_given_up = False
        self._notify, self._limits = notify, limits
        self._began = self._notified = time.monotonic()

    @property
    def is_cut(self) -> bool:
        """Whether the time was up before all simulations were made."""
        made = self.found.simulations if self.found else self.simulations
        return self.is_done and made < self.simulations

    def announce(self, stage: str) -> None:
        """Says what must be done before the thought begins."""
        self.stage = stage
        self._notify()

    def begin(self) -> None:
        """Notes that it is thought about from now on."""
        self._began = time.monotonic()

    def give_up(self) -> None:
        """Marks the job as given up, so that the table drops it."""
        self.is_given_up = True

    def update(self, decision: MoveDecision, simulations: int) -> None:
        """Takes what a slice found."""
        now = time.monotonic()
        done = simulations + (self.found.simulations if self.found else 0)
        self.found = Found(decision, done, now - self._began)
        is_late = now - self._began > self._limits.thought_seconds
        self.is_done = done >= self.simulations or is_late
        if self.is_done or now - self._notified >= self._limits.progress_seconds:
            self._notified = now
            self._tell()

    def resign(self) -> None:
        """Ends it because the player gives the game up."""
        self.is_resigned = self.is_done = True
        self._tell()

    def fail(self, error: str) -> None:
        """Ends it without a thought."""
        self.error, self.is_done = error, True
        self._tell()

    def _tell(self) -> None:
        try:
            self._notify()
        except Exception as error:  # others think in the same batch
            report(error)


class Queue:
    """Jobs that wait, and a thread that serves them as long as there are any.

    is_closed: whether nobody wants to know any more.

    Args:
        serve: takes the jobs that wait, does some of the work, and returns whether
            there is more to do.
        name: of the thread.
    """

    def __init__(self, serve: Callable[[], bool], name: str):
        self.waiting: collections.deque[Job] = collections.deque()
        self._serve, self._name = serve, name
        self._lock = threading.Lock()
        self._is_served = self.is_closed = False

    def put(self, job: Job) -> None:
        """Has a job served.

        Raises:
            RuntimeError: there is no thread that could; the job is dropped.
        """
        with self._lock:
            self.waiting.append(job)
            if self._is_served or self.is_closed:
                return
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self.waiting.remove(job)
                raise
            self._is_served = True

    @property
    def is_busy(self) -> bool:
        """Whether anybody waits or is served."""
        return self._is_served or bool(self.waiting)

    def take(self, most: int) -> list[Job]:
        """Returns the jobs that have waited longest and are still wanted."""
        taken = []
        while self.waiting and len(taken) < most:
            job = self.waiting.popleft()
            if not job.is_given_up:
                taken.append(job)
        return taken

    def close(self) -> None:
        """Ends the thread after what it is doing."""
        self.is_closed = True

    def _run(self) -> None:
        while True:
            has_more = self._serve()
            with self._lock:
                if self.is_closed or not (has_more or self.waiting):
                    self._is_served = False
                    return
