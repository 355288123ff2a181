"""Requested move decisions, and the queues in which they wait."""

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

FAILED = "internal server error; try again in a moment"


def report(error: Exception) -> str:
    """Prints an unexpected error; returns the message for the client."""
    with contextlib.suppress(OSError, ValueError):  # the terminal was closed
        traceback.print_exception(error, file=sys.stderr)
    return FAILED


class SearchProgress(NamedTuple):
    """The latest result of a search.

    decision: the best move so far.
    simulations: completed so far.
    seconds: since the search started, without waiting and compiling.
    """

    decision: MoveDecision
    simulations: int
    seconds: float


class Job:
    """A requested move decision; updated by a worker's thread.

    progress: the latest result, None before the first.
    error: the error message of a failed job.
    stage: what runs before the search, such as compiling; a text for the user.
    is_resigned: whether the player resigned.
    is_done: whether the result, error or resignation is final.
    is_cancelled: whether the result is no longer wanted.

    Args:
        state: an unfinished position.
        actions: the actions that lead to it.
        simulations: simulations to run; 0 for players that do not search.
        notify: called by the worker's thread after each change.
        limits: limits of the search time and of the notifications.
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
        self.progress: SearchProgress | None = None
        self.error: str | None = None
        self.stage: str | None = None
        self.is_resigned = self.is_done = False
        self.is_cancelled = False
        self._notify, self._limits = notify, limits
        self._started = self._notified = time.monotonic()

    @property
    def is_timed_out(self) -> bool:
        """Whether the time limit ended the search before all simulations."""
        made = self.progress.simulations if self.progress else self.simulations
        return self.is_done and made < self.simulations

    def set_stage(self, stage: str) -> None:
        """Sets the text of the stage before the search."""
        self.stage = stage
        self._notify()

    def start(self) -> None:
        """Starts the clock of the search."""
        self._started = time.monotonic()

    def cancel(self) -> None:
        """Marks the job as unwanted; its worker drops it."""
        self.is_cancelled = True

    def update(self, decision: MoveDecision, simulations: int) -> None:
        """Stores a decision after `simulations` further simulations."""
        now = time.monotonic()
        done = simulations + (self.progress.simulations if self.progress else 0)
        self.progress = SearchProgress(decision, done, now - self._started)
        is_late = now - self._started > self._limits.decision_seconds
        self.is_done = done >= self.simulations or is_late
        if self.is_done or now - self._notified >= self._limits.progress_seconds:
            self._notified = now
            self._notify_safely()

    def resign(self) -> None:
        """Ends the job with the player's resignation."""
        self.is_resigned = self.is_done = True
        self._notify_safely()

    def fail(self, error: str) -> None:
        """Ends the job with an error message."""
        self.error, self.is_done = error, True
        self._notify_safely()

    def _notify_safely(self) -> None:
        try:
            self._notify()
        except Exception as error:  # must not affect other jobs of the batch
            report(error)


class JobQueue:
    """Waiting jobs, and a thread that runs while there are any.

    waiting: the jobs, the oldest first.
    is_closed: whether the thread must end.

    Args:
        serve: takes waiting jobs, does one step of the work, and returns whether there
            is more to do.
        name: name of the thread.
    """

    def __init__(self, serve: Callable[[], bool], name: str):
        self.waiting: collections.deque[Job] = collections.deque()
        self._serve, self._name = serve, name
        self._lock = threading.Lock()
        self._is_served = self.is_closed = False

    def put(self, job: Job) -> None:
        """Adds a job.

        Raises:
            RuntimeError: no thread can be started; the job is dropped.
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
        """Whether a job waits or runs."""
        return self._is_served or bool(self.waiting)

    def take(self, most: int) -> list[Job]:
        """Removes the oldest jobs; returns at most `most` that are not cancelled."""
        taken = []
        while self.waiting and len(taken) < most:
            job = self.waiting.popleft()
            if not job.is_cancelled:
                taken.append(job)
        return taken

    def close(self) -> None:
        """Ends the thread after the current step."""
        self.is_closed = True

    def _run(self) -> None:
        while True:
            has_more = self._serve()
            with self._lock:
                if self.is_closed or not (has_more or self.waiting):
                    self._is_served = False
                    return
