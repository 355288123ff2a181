"""Threads that compute the move decisions of many clients.

Each worker serves one player and one range of simulations, with a thread that runs
while it has jobs. A slow or compiling player therefore does not delay the others.
"""

import sys
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from azjax.games import Game
from azjax.play.incremental_search import (
    Batch,
    IncrementalSearch,
    batch_sizes,
)
from azjax.play.server.jobs import Job, JobQueue, report
from azjax.play.server.memory import TreeBudget
from azjax.players import ExternalPlayer, ForfeitError, PlayerSession, ResignError

PLAYER_FAILED = "the opponent failed"
COMPILING = "Compiling the search"
BUDGET_WAIT = 0.01  # between two attempts to reserve memory for trees (seconds)


class SearchWorker:
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
        self.search = search
        self._budget, self._compiler = budget, compiler
        self._active: list[Job] = []  # one for each of the first rows of the batch
        self._trees: Any = None
        self._size = 0
        self._seed = time.time_ns() if seed is None else seed
        self._compiling: set[int] = set()
        self._num_expected = 1
        self._queue = JobQueue(self._serve, "azjax-search")
        self.close = self._queue.close

    def submit(self, job: Job) -> None:
        """Adds a job."""
        if not self.search.sizes:
            job.set_stage(COMPILING)
        self._queue.put(job)

    def warm_up(self, num_clients: int) -> Future[None]:
        """Compiles the search in the background, unless it is compiled, for a batch of
        about `num_clients`."""
        self._num_expected = max(self._num_expected, num_clients)
        size = self._useful_size(self._num_expected)
        return self._compiler.submit(self.search.compile_first, size)

    @property
    def is_busy(self) -> bool:
        """Whether a job waits or runs."""
        return self._queue.is_busy

    def _serve(self) -> bool:
        try:
            return self._search_slice()
        except Exception as error:
            if not self._queue.is_closed:  # else other parts may be closed too
                report(error)
            # If no job could be started, no waiting job can.
            waiting = len(self._queue.waiting)
            for job in self._active or self._queue.take(waiting):
                job.fail(PLAYER_FAILED)
            self._release()
            return False

    def _search_slice(self) -> bool:
        """Adds waiting jobs to the batch, searches a slice, and updates the jobs."""
        rows = [row for row, job in enumerate(self._active) if not job.is_cancelled]
        if not rows and not self._queue.waiting:
            self._release()
            return False
        size = self._next_size(len(rows))
        if size == 0:
            time.sleep(BUDGET_WAIT)
            return True
        jobs = [self._active[row] for row in rows]
        added = self._queue.take(size - len(jobs))
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
        batch = Batch(states, total, made)
        decisions, self._trees = self.search.search(self._seed, batch, self._trees)
        for job, decision, before in zip(self._active, decisions, made, strict=False):
            left = job.simulations - int(before)
            job.update(decision, min(self.search.per_slice, left))
            job.is_cancelled |= job.is_done
        return True

    def _next_size(self, num_active: int) -> int:
        """Returns the size of the next batch, at least `num_active`; 0 if its trees
        exceed the budget."""
        search = self.search
        wanted = num_active + len(self._queue.waiting)
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


class SessionWorker:
    """Asks a player that cannot be compiled, for one position at a time.

    Args:
        player: the player.
        game: the game.
        seed: seed of the player's random choices.
    """

    def __init__(self, player: ExternalPlayer, game: Game, seed: int = 0):
        self._player, self._game, self._seed = player, game, seed
        self._session: PlayerSession | None = None
        self._queue = JobQueue(self._serve, "azjax-session")
        self.submit = self._queue.put

    @property
    def is_busy(self) -> bool:
        """Whether a job waits or runs."""
        return self._queue.is_busy

    def close(self) -> None:
        """Closes the session; a running decision is dropped."""
        self._queue.close()
        self._close_session()

    def _serve(self) -> bool:
        for job in self._queue.take(1):
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
