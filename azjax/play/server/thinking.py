"""Thoughts of many visitors: those of the same player and length share a batch.

Each table, one for a player and a length of thought, has a thread while somebody thinks
there, so that a slow player, or one that is being compiled, keeps nobody waiting at
other tables.
"""

import collections
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import Game, State
from azjax.play.server.limits import Limits
from azjax.play.server.slices import Batch, Slicer, batch_sizes, rearranged
from azjax.players import ExternalPlayer, ForfeitError, Seat, Thought

OUT_OF_ORDER = "the player is out of order"


class Found(NamedTuple):
    """What was thought until now.

    thought: what the player would do.
    simulations: made so far.
    seconds: since it began; waiting and compiling do not count.
    """

    thought: Thought
    simulations: int
    seconds: float


class Job:
    """A thought that somebody waits for; filled by a table's thread.

    found: what there is until now.
    error: why there will be nothing.
    is_done: whether `found` or `error` is the end of it.

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
        self.is_done = False
        self.is_given_up = False
        self._notify, self._limits = notify, limits
        self._began = self._notified = time.monotonic()

    def begin(self) -> None:
        """Notes that it is thought about from now on."""
        self._began = time.monotonic()

    def give_up(self) -> None:
        """Has the table drop it; called by whoever waits."""
        self.is_given_up = True

    def update(self, thought: Thought, simulations: int) -> None:
        """Takes what a slice found."""
        now = time.monotonic()
        done = simulations + (self.found.simulations if self.found else 0)
        self.found = Found(thought, done, now - self._began)
        is_late = now - self._began > self._limits.thought_seconds
        self.is_done = done >= self.simulations or is_late
        if self.is_done or now - self._notified >= self._limits.progress_seconds:
            self._notified = now
            self._notify()

    def fail(self, error: str) -> None:
        """Ends it without a thought."""
        self.error, self.is_done = error, True
        self._notify()


class TreeRoom:
    """How much of the device's memory search trees may take, all together."""

    def __init__(self, total: int):
        self._total = total
        self._taken: dict[object, int] = {}
        self._lock = threading.Lock()

    def take(self, owner: object, wanted: int) -> bool:
        """Returns whether an owner may have so many bytes, instead of what it had.

        Whoever has the only trees may always have them.
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


class Queue:
    """Jobs that wait, and a thread that serves them as long as there are any.

    Args:
        serve: takes the jobs that wait, does some of the work, and returns whether
            there is more to do.
        name: of the thread.
    """

    def __init__(self, serve: Callable[[], bool], name: str):
        self.waiting: collections.deque[Job] = collections.deque()
        self._serve, self._name = serve, name
        self._lock = threading.Lock()
        self._is_served = self._is_closed = False

    def put(self, job: Job) -> None:
        """Has a job served."""
        with self._lock:
            self.waiting.append(job)
            if self._is_served or self._is_closed:
                return
            self._is_served = True
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

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
        self._is_closed = True

    def _run(self) -> None:
        while True:
            has_more = self._serve()
            with self._lock:
                if self._is_closed or not (has_more or self.waiting):
                    self._is_served = False
                    return


class SearchTable:
    """Where a compiled player thinks about the positions of many visitors at once.

    Args:
        slicer: the player's search.
        room: for its trees.
        compiler: compiles for larger batches, meanwhile.
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
        self._queue = Queue(self._serve, "azjax-search")
        self.ask, self.close = self._queue.put, self._queue.close

    def _serve(self) -> bool:
        try:
            return self._search_slice()
        except Exception:
            traceback.print_exc(file=sys.stderr)
            for job in [*self._seated, *self._queue.take(len(self._queue.waiting))]:
                job.fail(OUT_OF_ORDER)
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
        for job in newcomers:
            job.begin()
        self._seat(jobs + newcomers, rows, size)
        if not self._seated:
            return True
        self._seed = (self._seed + 1) % 2**32
        batch = _batch(self._seated, size)
        thoughts, self._memory = self.slicer.search(self._seed, batch, self._memory)
        plan = self.slicer.plan
        for job, thought in zip(self._seated, thoughts, strict=False):
            job.update(thought, plan.per_slice if plan else 0)
            job.is_given_up |= job.is_done
        return True

    def _seat(self, jobs: list[Job], rows: list[int], size: int) -> None:
        """Gives everybody a row, those who were there before their own trees."""
        if size != self._size and not rows:
            self._memory = self.slicer.memory(size)
        elif size != self._size or rows != list(range(len(rows))):
            source = np.full(size, max(self._size, 1), np.int32)
            source[: len(rows)] = rows
            self._memory = rearranged(self._memory, source)
        self._seated, self._size = jobs, size

    def _next_size(self, num_seated: int) -> int:
        """Returns the size of the next batch, at least the number of those who are
        seated; 0 if there is no room for it."""
        slicer = self.slicer
        if not slicer.sizes:
            slicer.compile(batch_sizes()[0])
        wanted = num_seated + len(self._queue.waiting)
        ideal = _smallest(batch_sizes(), wanted)
        possible = [size for size in slicer.sizes if size >= num_seated]
        size = _smallest(possible, wanted)
        if ideal > size and ideal not in self._compiling:
            self._compiling.add(ideal)
            self._compiler.submit(self._compile, ideal)
        while not self._room.take(self, slicer.bytes(size)):
            smaller = [s for s in possible if s < size]
            if not smaller:
                return self._size if num_seated else 0
            size = smaller[-1]
        return size

    def _compile(self, size: int) -> None:
        try:
            self.slicer.compile(size)
        except Exception:  # it goes on in smaller batches
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
        self._seat: Seat | None = None
        self._queue = Queue(self._serve, "azjax-seat")
        self.ask = self._queue.put

    def close(self) -> None:
        """Lets the player go; its last thought is dropped."""
        self._queue.close()
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.close()

    def _serve(self) -> bool:
        for job in self._queue.take(1):
            job.begin()
            try:
                self._seat = self._seat or self._player.sit(self._game, self._seed)
                job.update(self._seat.choose(job.state, job.actions), 0)
            except (ForfeitError, ValueError) as error:
                self._seat = None
                job.fail(f"the player cannot go on: {error}")
            except Exception:
                traceback.print_exc(file=sys.stderr)
                self._seat = None
                job.fail(OUT_OF_ORDER)
        return False


def _batch(jobs: list[Job], size: int) -> Batch:
    """Returns the positions of all rows; those that nobody has repeat the first."""
    filled = [*jobs, *jobs[:1] * (size - len(jobs))]
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *(j.state for j in filled))
    is_new = np.array([job.found is None for job in filled])
    is_new[len(jobs) :] = True
    return Batch(states, is_new)


def _smallest(sizes: Any, wanted: int) -> int:
    """Returns the smallest size that is enough, or else the largest."""
    return next((size for size in sizes if size >= wanted), sizes[-1])
