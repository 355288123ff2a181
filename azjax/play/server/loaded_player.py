"""A loaded player with its search workers."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from azjax.games import Game
from azjax.play.incremental_search import (
    MAX_STRENGTH,
    STRENGTHS,
    IncrementalSearch,
    SlicePlan,
    batch_sizes,
    plan_for,
    search_text,
    sliced_player,
)
from azjax.play.server.limits import Limits
from azjax.play.server.memory import (
    PROGRAM_BYTES,
    MemoryBudget,
    TreeBudget,
    array_bytes,
)
from azjax.play.server.search_workers import SearchWorker, SessionWorker
from azjax.players import AnyPlayer, ExternalPlayer

Worker = SearchWorker | SessionWorker
FileTimes = tuple[int, ...]
QUIET_SECONDS = 2.0  # without a waiting client, after which the server is idle
FIRST_SECONDS = 10.0  # in which who starts the server may open a page


class Activity:
    """Open requests, updated by the event loop's thread only.

    num_decisions: requested move decisions that are not answered yet, and reviews,
        which have one at a time.
    num_reviews: requested reviews that are not answered yet.
    num_starts: clients that wait for a game to start.
    last_answer: time of the last answer to either (seconds, monotonic clock),
        initially `FIRST_SECONDS` after creation.
    compilation: of the search that a client needs next; set by any thread.
    """

    def __init__(self) -> None:
        self.num_decisions = self.num_reviews = self.num_starts = 0
        self.last_answer = time.monotonic() + FIRST_SECONDS
        self.compilation: Future[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a client waits, or will for the search that is compiled, or did
        within `QUIET_SECONDS`: a client that plays soon sends the next request."""
        is_compiling = self.compilation is not None and not self.compilation.done()
        is_quiet = time.monotonic() - self.last_answer >= QUIET_SECONDS
        return any((self.num_decisions, self.num_starts, is_compiling, not is_quiet))


class SharedResources:
    """Resources that all loaded players share.

    limits: limits of client requests.
    activity: open requests.
    memory: budget of loaded players and rules.
    trees: budget of search trees.
    compiler: thread that compiles in the background.

    Args:
        limits: see above.
        seed: seed of the players' random choices; None draws one.
    """

    def __init__(self, limits: Limits, seed: int | None = None):
        self.limits, self.seed = limits, seed
        self.activity = Activity()
        self.memory = MemoryBudget(limits.memory_bytes)
        self.trees = TreeBudget(limits.search_bytes)
        self.compiler = ThreadPoolExecutor(1, thread_name_prefix="azjax-compile")

    def close(self) -> None:
        """Stops the background compilations."""
        self.compiler.shutdown(wait=False, cancel_futures=True)


class LoadedPlayer:
    """A loaded player and its workers, one for each slice plan.

    strengths: allowed numbers of simulations, ascending; empty if the player does not
        search or cannot be given a number.
    default_strength: the largest allowed number up to the player's own; None if
        `strengths` is empty.
    file_times: modification times of the files from which it was loaded.
    last_used: time of the last use, for the `MemoryBudget`.

    Args:
        game: the game.
        player: the player.
        resources: shared with other players.
        file_times: see above.
        previous: an older version of the player, whose compiled programs are reused
            where the shapes agree.
        make_room: called before a search with this object; frees memory.

    Raises:
        ValueError: the player searches and the tree budget is too small for any
            search.
    """

    def __init__(
        self,
        game: Game,
        player: AnyPlayer,
        resources: SharedResources,
        *,
        file_times: FileTimes = (),
        previous: "LoadedPlayer | None" = None,
        make_room: Callable[["LoadedPlayer"], None] = lambda _: None,
    ):
        self.file_times = file_times
        self._game, self._player, self._resources = game, player, resources
        self._make_room = make_room
        self._lock = threading.Lock()
        self._workers: dict[SlicePlan | None, Worker] = {}
        self._previous_workers = previous._workers if previous else {}
        self._weight_bytes = array_bytes(player)
        self.last_used = resources.memory.now()
        self.strengths: list[int] = []
        own = getattr(player, "simulations", 0)
        is_external = isinstance(player, ExternalPlayer)
        if not is_external and sliced_player(player, plan_for(1)) is not None:
            limits = resources.limits
            self.strengths = [
                number
                for number in sorted({*STRENGTHS, own or 1})
                if number <= min(limits.simulations, MAX_STRENGTH)
                and self._search(plan_for(number)).bytes(1) <= limits.search_bytes
            ]
            if not self.strengths:
                raise ValueError(
                    "the player's search exceeds the memory for search trees"
                )
        allowed = (number for number in self.strengths if number <= own)
        self.default_strength = max(allowed, default=None)

    def describe(self, title: str) -> dict[str, Any]:
        """Returns the description of the player for the page, named `title`."""
        return {
            "player": title,
            "simulations": self.default_strength,
            "strengths": self.strengths,
            "search": search_text(self._player),
        }

    def worker(self, simulations: int | None) -> tuple[Worker, int]:
        """Returns the worker for a decision, and its number of simulations.

        Args:
            simulations: the requested number; None means the default.

        Raises:
            ValueError: the number is not allowed.
        """
        self.last_used = self._resources.memory.now()
        if not self.strengths:
            return self._worker(None), 0
        simulations = self.default_strength if simulations is None else simulations
        if simulations not in self.strengths:
            allowed = ", ".join(map(str, self.strengths))
            raise ValueError(f"simulations must be one of {allowed}: {simulations}")
        return self._worker(plan_for(simulations)), simulations

    def warm_up(self) -> None:
        """Compiles the default search in the background."""
        worker, _ = self.worker(None)
        if isinstance(worker, SearchWorker):
            activity = self._resources.activity
            activity.compilation = worker.warm_up(activity.num_starts)

    def compile(self) -> None:
        """Compiles the default search for the smallest batch, in this thread."""
        worker, _ = self.worker(None)
        if isinstance(worker, SearchWorker):
            worker.search.compile(batch_sizes()[0])

    @property
    def bytes(self) -> int:
        """Estimated size of the weights and compiled programs, at least one program
        for each worker."""
        workers = [*self._workers.values(), *self._previous_workers.values()]
        searches = [w.search for w in workers if isinstance(w, SearchWorker)]
        num_programs = sum(max(1, len(search.sizes)) for search in searches)
        return self._weight_bytes + PROGRAM_BYTES * num_programs

    @property
    def is_busy(self) -> bool:
        """Whether a worker is busy; an external program is never evicted."""
        is_external = isinstance(self._player, ExternalPlayer)
        return is_external or any(w.is_busy for w in list(self._workers.values()))

    def shrink(self) -> None:
        """Drops idle workers. A worker that a request already holds still serves it."""
        if isinstance(self._player, ExternalPlayer):
            return
        self._previous_workers = {}
        for plan, worker in list(self._workers.items()):
            if not worker.is_busy:
                self._workers.pop(plan, None)

    def close(self) -> None:
        """Closes the workers."""
        for worker in list(self._workers.values()):
            worker.close()

    def _worker(self, plan: SlicePlan | None) -> Worker:
        with self._lock:
            worker = self._workers.get(plan)
            if worker is None:
                worker = self._workers[plan] = self._new_worker(plan)
        self._make_room(self)
        return worker

    def _new_worker(self, plan: SlicePlan | None) -> Worker:
        shared, player = self._resources, self._player
        if isinstance(player, ExternalPlayer):
            return SessionWorker(player, self._game, shared.seed or 0)
        previous = self._previous_workers.pop(plan, None)
        if isinstance(previous, SearchWorker) and previous.search.fits(player):
            previous.search.replace_player(player)
            return previous
        search = self._search(plan)
        return SearchWorker(search, shared.trees, shared.compiler, shared.seed)

    def _search(self, plan: SlicePlan | None) -> IncrementalSearch:
        assert not isinstance(self._player, ExternalPlayer)
        return IncrementalSearch(self._player, plan, self._game.init())
