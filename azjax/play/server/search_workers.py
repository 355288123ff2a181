"""Requested move decisions, and the threads that compute those of many clients.

Each worker serves one player and one range of simulations, with a thread that runs
while it has jobs. A slow or compiling player therefore does not delay the others.
"""

import collections
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import Game, State
from azjax.play.incremental_search import IncrementalSearch, batch_sizes
from azjax.play.server.limits import ServerLimits
from azjax.players import (
    ExternalPlayer,
    ForfeitError,
    MoveDecision,
    PlayerSession,
    ResignError,
)

FAILED = "internal server error; try again in a moment"
PLAYER_FAILED = "the opponent failed"
COMPILING = "Compiling the search"
BUDGET_WAIT = 0.01  # between two attempts to reserve memory for trees (seconds)


def report(error: Exception) -> str:
    """Prints an unexpected error; returns the message for the client."""
    with contextlib.suppress(OSError, ValueError):  # the terminal was closed
        traceback.print_exception(error, file=sys.stderr)
    return FAILED


class CancelledError(Exception):
    """The decision is no longer wanted."""


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
        notify: called by the worker's thread after each change; must not raise.
        limits: limits of the search time and of the notifications.
    """

    def __init__(
        self,
        state: State,
        actions: tuple[int, ...],
        simulations: int,
        notify: Callable[[], object],
        limits: ServerLimits,
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
            self._notify()

    def resign(self) -> None:
        """Ends the job with the player's resignation."""
        self.is_resigned = self.is_done = True
        self._notify()

    def fail(self, error: str) -> None:
        """Ends the job with an error message."""
        self.error, self.is_done = error, True
        self._notify()


class Worker:
    """Waiting jobs, and a thread that serves them while there are any.

    Subclasses define `_serve`.
    """

    def __init__(self) -> None:
        self._waiting: collections.deque[Job] = collections.deque()  # the oldest first
        self._lock = threading.Lock()
        self._is_served = self._is_closed = False

    def submit(self, job: Job) -> None:
        """Adds a job.

        Raises:
            RuntimeError: no thread can be started; the job is dropped.
        """
        with self._lock:
            self._waiting.append(job)
            if self._is_served or self._is_closed:
                return
            name = f"azjax-{type(self).__name__}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._waiting.remove(job)
                raise
            self._is_served = True

    @property
    def is_busy(self) -> bool:
        """Whether a job waits or runs."""
        return self._is_served or bool(self._waiting)

    def close(self) -> None:
        """Ends the thread after the current step."""
        self._is_closed = True

    def _take(self, most: int) -> list[Job]:
        """Removes the oldest jobs; returns at most `most` that are not cancelled."""
        taken = []
        while self._waiting and len(taken) < most:
            job = self._waiting.popleft()
            if not job.is_cancelled:
                taken.append(job)
        return taken

    def _run(self) -> None:
        while True:
            has_more = self._serve()
            with self._lock:
                if self._is_closed or not (has_more or self._waiting):
                    self._is_served = False
                    return

    def _serve(self) -> bool:
        """Takes waiting jobs and does one step of the work; returns whether there is
        more to do."""
        raise NotImplementedError


class TreeBudget:
    """Limits the device memory of all search trees together.

    Args:
        total: bytes for all trees.
    """

    def __init__(self, total: int):
        self._total = total
        self._reserved: dict[object, int] = {}
        self._lock = threading.Lock()

    def could_reserve(self, num_bytes: int) -> bool:
        """Returns whether `num_bytes` fit when nothing else is reserved."""
        return num_bytes <= self._total

    def reserve(self, owner: object, num_bytes: int) -> bool:
        """Replaces an owner's reservation; returns whether it succeeded.

        It always succeeds if no other owner has a reservation.
        """
        with self._lock:
            others = sum(self._reserved.values()) - self._reserved.get(owner, 0)
            if num_bytes and others and others + num_bytes > self._total:
                return False
            self._reserved[owner] = num_bytes
            return True

    def release(self, owner: object) -> None:
        """Removes an owner's reservation."""
        with self._lock:
            self._reserved.pop(owner, None)


class SearchWorker(Worker):
    """Searches the positions of many clients in one batch.

    Args:
        search: the player's compiled search.
        budget: memory budget of all search trees.
        compiler: compiles other batch sizes in the background.
        seed: seed of the player's random choices; None draws one.
    """

    def __init__(
        self,
        search: IncrementalSearch,
        budget: TreeBudget,
        compiler: ThreadPoolExecutor,
        seed: int | None = None,
    ):
        super().__init__()
        self.search = search
        self._budget, self._compiler = budget, compiler
        self._active: list[Job] = []  # one for each of the first rows of the batch
        self._trees: Any = None
        self._size = 0
        self._seed = time.time_ns() if seed is None else seed
        self._compiling: set[int] = set()
        self._num_expected = 1

    def submit(self, job: Job) -> None:
        """Adds a job."""
        if not self.search.sizes:
            job.set_stage(COMPILING)
        super().submit(job)

    def warm_up(self, num_clients: int) -> Future[None]:
        """Compiles the search in the background, unless it is compiled, for a batch of
        about `num_clients`."""
        self._num_expected = max(self._num_expected, num_clients)
        size = self._useful_size(self._num_expected)
        return self._compiler.submit(self.search.compile_first, size)

    def _serve(self) -> bool:
        try:
            return self._search_slice()
        except Exception as error:
            if not self._is_closed:  # else other parts may be closed too
                report(error)
            # If no job could be started, no waiting job can.
            for job in self._active or self._take(len(self._waiting)):
                job.fail(PLAYER_FAILED)
            self._release()
            return False

    def _search_slice(self) -> bool:
        """Adds waiting jobs to the batch, searches a slice, and updates the jobs."""
        rows = [row for row, job in enumerate(self._active) if not job.is_cancelled]
        if not rows and not self._waiting:
            self._release()
            return False
        size = self._next_size(len(rows))
        if size == 0:
            time.sleep(BUDGET_WAIT)
            return True
        jobs = [self._active[row] for row in rows]
        added = self._take(size - len(jobs))
        self._active = jobs + added  # they receive the error if this fails
        if size != self._size and not rows:
            self._trees = self.search.empty_trees(size)
        elif size != self._size or rows != list(range(len(rows))):
            # The trees of the remaining jobs are kept.
            source = np.full(size, max(self._size, 1), np.int32)
            source[: len(rows)] = rows
            self._trees = self.search.rearranged(self._trees, source)
        self._size = size
        if not self._active:
            return True
        for job in added:
            job.start()
        self._seed = (self._seed + 1) % 2**32
        # Unused rows repeat the first job, without simulations made.
        filled = [*self._active, *self._active[:1] * (size - len(self._active))]
        states = jax.tree.map(
            lambda *leaves: np.stack(leaves), *(j.state for j in filled)
        )
        total = np.array([job.simulations for job in filled], np.int32)
        made = np.zeros(size, np.int32)
        for row, job in enumerate(self._active):
            made[row] = job.progress.simulations if job.progress else 0
        decisions, self._trees = self.search.search(
            self._seed, states, total, made, self._trees
        )
        for job, decision, before in zip(self._active, decisions, made, strict=False):
            left = job.simulations - int(before)
            job.update(decision, min(self.search.per_slice, left))
            job.is_cancelled |= job.is_done
        return True

    def _next_size(self, num_active: int) -> int:
        """Returns the size of the next batch, at least `num_active`; 0 if its trees
        exceed the budget."""
        search = self.search
        wanted = num_active + len(self._waiting)
        if not search.sizes:
            search.compile_first(self._useful_size(max(wanted, self._num_expected)))
        self._request(self._useful_size(wanted))
        possible = [size for size in search.sizes if size >= num_active]
        size = next((size for size in possible if size >= wanted), possible[-1])
        while not self._budget.reserve(self, search.bytes(size)):
            smaller = [s for s in possible if s < size]
            if not smaller:
                self._request(1)  # needs less memory
                return self._size if num_active else 0
            size = smaller[-1]
        return size

    def _request(self, size: int) -> None:
        """Starts to compile a batch size in the background, once."""

        def compile() -> None:
            try:
                self.search.compile(size)
            except Exception:  # the other batch sizes still work
                traceback.print_exc(file=sys.stderr)

        if size not in (*self.search.sizes, *self._compiling):
            self._compiling.add(size)
            self._compiler.submit(compile)

    def _useful_size(self, wanted: int) -> int:
        """Returns the largest batch size that `wanted` positions fill at least half and
        whose trees fit the budget."""
        return max(
            size
            for size in batch_sizes()
            if size == 1
            or (
                size <= 2 * wanted
                and self._budget.could_reserve(self.search.bytes(size))
            )
        )

    def _release(self) -> None:
        self._active, self._trees, self._size = [], None, 0
        self._budget.release(self)


class SessionWorker(Worker):
    """Asks a player that cannot be compiled, for one position at a time.

    Args:
        player: the player.
        game: the game.
        seed: seed of the player's random choices.
    """

    def __init__(self, player: ExternalPlayer, game: Game, seed: int = 0):
        super().__init__()
        self._player, self._game, self._seed = player, game, seed
        self._session: PlayerSession | None = None

    def close(self) -> None:
        """Closes the session; a running decision is dropped."""
        super().close()
        self._close_session()

    def _serve(self) -> bool:
        for job in self._take(1):
            job.start()
            try:
                self._session = self._session or self._player.start_session(
                    self._game, self._seed
                )
                job.update(self._session.choose(job.state, job.actions), 0)
            except ResignError:
                job.resign()
            except (ForfeitError, ValueError) as error:
                # The client must not learn which program runs here, nor its path.
                print(f"azjax: a player failed: {error}", file=sys.stderr)
                self._fail(job)
            except Exception as error:
                report(error)
                self._fail(job)
        return False

    def _fail(self, job: Job) -> None:
        """Fails a job and closes the session; the next job starts another."""
        try:
            self._close_session()
        finally:
            job.fail(PLAYER_FAILED)

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
