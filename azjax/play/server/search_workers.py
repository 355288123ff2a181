"""Thoughts of many visitors: those of the same player and length share a batch.

Each table, one for a player and a length of thought, has a thread while somebody thinks
there, so that a slow player, or one that is being compiled, keeps nobody waiting at
other tables.
"""

import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from azjax.games import Game
from azjax.play.server.incremental_search import Batch, Slicer, batch_sizes
from azjax.play.server.jobs import Job, Queue, report
from azjax.players import ExternalPlayer, ForfeitError, PlayerSession, ResignError

CANNOT_GO_ON = "the opponent could not go on"
COMPILING = "Compiling the search"


class TreeRoom:
    """How much of the device's memory search trees may take, all together."""

    def __init__(self, total: int):
        self._total = total
        self._taken: dict[object, int] = {}
        self._lock = threading.Lock()

    def could_take(self, wanted: int) -> bool:
        """Returns whether there is room for so many bytes when nobody has any."""
        return wanted <= self._total

    def take(self, owner: object, wanted: int) -> bool:
        """Returns whether an owner may have so many bytes, instead of what it had.

        An owner may always have its bytes if no other owner has any.
        """
        with self._lock:
            others = sum(self._taken.values()) - self._taken.get(owner, 0)
            if wanted and others and others + wanted > self._total:
                return False
            self._taken[owner] = wanted
            return True

    def leave(self, owner: object) -> None:
        """Takes back what an owner has."""
        with self._lock:
            self._taken.pop(owner, None)


class SearchTable:
    """Where a compiled player thinks about the positions of many visitors at once.

    Args:
        slicer: the player's search.
        room: for its trees.
        compiler: compiles for batches of other sizes, meanwhile.
        seed: of the player's chance; None draws one.
    """

    def __init__(
        self,
        slicer: Slicer,
        room: TreeRoom,
        compiler: ThreadPoolExecutor,
        seed: int | None = None,
    ):
        self.slicer = slicer
        self._room, self._compiler = room, compiler
        self._seated: list[Job] = []
        self._memory: Any = None
        self._size = 0
        self._seed = time.time_ns() if seed is None else seed
        self._compiling: set[int] = set()
        self._num_expected = 1
        self._queue = Queue(self._serve, "azjax-search")
        self.close = self._queue.close

    def ask(self, job: Job) -> None:
        """Has a position thought about."""
        if not self.slicer.sizes:
            job.announce(COMPILING)
        self._queue.put(job)

    def warm_up(self, num_visitors: int) -> None:
        """Has the search compiled in another thread, so that about so many visitors
        are served well by what is compiled first."""
        self._num_expected = max(self._num_expected, num_visitors)
        if not self.slicer.sizes:
            size = self._useful_size(self._num_expected)
            self._compiler.submit(self.slicer.compile_first, size)

    @property
    def is_busy(self) -> bool:
        """Whether anybody thinks here, or waits to."""
        return self._queue.is_busy

    def _serve(self) -> bool:
        try:
            return self._search_slice()
        except Exception as error:
            if not self._queue.is_closed:  # what it needs may be closed as well
                report(error)
            # If nobody was let in yet, nobody who waits can be.
            waiting = len(self._queue.waiting)
            for job in self._seated or self._queue.take(waiting):
                job.fail(CANNOT_GO_ON)
            self._leave()
            return False

    def _search_slice(self) -> bool:
        """Lets newcomers in, searches a slice, and lets those out who are done."""
        rows = [row for row, job in enumerate(self._seated) if not job.is_given_up]
        if not rows and not self._queue.waiting:
            self._leave()
            return False
        size = self._next_size(len(rows))
        if size == 0:
            time.sleep(0.01)  # until others give room for trees
            return True
        jobs = [self._seated[row] for row in rows]
        newcomers = self._queue.take(size - len(jobs))
        self._seat(jobs + newcomers, rows, size)
        if not self._seated:
            return True
        for job in newcomers:
            job.begin()
        self._seed = (self._seed + 1) % 2**32
        batch = _batch(self._seated, size)
        decisions, self._memory = self.slicer.search(self._seed, batch, self._memory)
        for job, decision, made in zip(
            self._seated, decisions, batch.made, strict=False
        ):
            job.update(
                decision, min(self.slicer.per_slice, job.simulations - int(made))
            )
            job.is_given_up |= job.is_done
        return True

    def _seat(self, jobs: list[Job], rows: list[int], size: int) -> None:
        """Gives everybody a row, those who were there before their own trees."""
        self._seated = jobs  # they receive the error if this fails
        if size != self._size and not rows:
            self._memory = self.slicer.memory(size)
        elif size != self._size or rows != list(range(len(rows))):
            source = np.full(size, max(self._size, 1), np.int32)
            source[: len(rows)] = rows
            self._memory = self.slicer.rearranged(self._memory, source)
        self._size = size

    def _next_size(self, num_seated: int) -> int:
        """Returns the size of the next batch, at least the number of those who are
        seated; 0 if there is no room for it."""
        slicer = self.slicer
        wanted = num_seated + len(self._queue.waiting)
        if not slicer.sizes:
            slicer.compile_first(self._useful_size(max(wanted, self._num_expected)))
        self._request(self._useful_size(wanted))
        possible = [size for size in slicer.sizes if size >= num_seated]
        size = _smallest(possible, wanted)
        while not self._room.take(self, slicer.bytes(size)):
            smaller = [s for s in possible if s < size]
            if not smaller:
                self._request(1)  # takes less room
                return self._size if num_seated else 0
            size = smaller[-1]
        return size

    def _request(self, size: int) -> None:
        """Has another size compiled in another thread; nobody waits for it."""
        if size not in (*self.slicer.sizes, *self._compiling):
            self._compiling.add(size)
            self._compiler.submit(self._compile, size)

    def _useful_size(self, wanted: int) -> int:
        """Returns the largest size of which so many positions would fill half, if its
        trees may have room."""
        return max(
            size
            for size in batch_sizes()
            if size == 1
            or (size <= 2 * wanted and self._room.could_take(self.slicer.bytes(size)))
        )

    def _compile(self, size: int) -> None:
        try:
            self.slicer.compile(size)
        except Exception:  # it goes on in batches of other sizes
            traceback.print_exc(file=sys.stderr)

    def _leave(self) -> None:
        self._seated, self._memory, self._size = [], None, 0
        self._room.leave(self)


class SeatTable:
    """Where a player that cannot be compiled thinks, about one position at a time.

    Args:
        player: the player.
        game: what is played.
        seed: of the player's chance.
    """

    def __init__(self, player: ExternalPlayer, game: Game, seed: int = 0):
        self._player, self._game, self._seed = player, game, seed
        self._seat: PlayerSession | None = None
        self._queue = Queue(self._serve, "azjax-seat")
        self.ask = self._queue.put

    @property
    def is_busy(self) -> bool:
        """Whether anybody thinks here, or waits to."""
        return self._queue.is_busy

    def close(self) -> None:
        """Lets the player go; its last thought is dropped."""
        self._queue.close()
        self._leave()

    def _serve(self) -> bool:
        for job in self._queue.take(1):
            job.begin()
            try:
                self._seat = self._seat or self._player.start_session(
                    self._game, self._seed
                )
                job.update(self._seat.choose(job.state, job.actions), 0)
            except ResignError:
                job.resign()
            except (ForfeitError, ValueError) as error:
                # Visitors need not know which programs run here, nor where.
                print(f"azjax: a player cannot go on: {error}", file=sys.stderr)
                self._fail(job)
            except Exception as error:
                report(error)
                self._fail(job)
        return False

    def _fail(self, job: Job) -> None:
        """Ends a job without a thought; the next one gets another seat."""
        try:
            self._leave()
        finally:
            job.fail(CANNOT_GO_ON)

    def _leave(self) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.close()


def _batch(jobs: list[Job], size: int) -> Batch:
    """Returns the positions of all rows; those that nobody has repeat the first."""
    filled = [*jobs, *jobs[:1] * (size - len(jobs))]
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *(j.state for j in filled))
    total = np.array([job.simulations for job in filled], np.int32)
    made = np.array([job.found.simulations if job.found else 0 for job in filled])
    made[len(jobs) :] = 0
    return Batch(states, total, made.astype(np.int32))


def _smallest(sizes: Any, wanted: int) -> int:
    """Returns the smallest size that is enough, or else the largest."""
    return next((size for size in sizes if size >= wanted), sizes[-1])
