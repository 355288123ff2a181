"""Players and rules, loaded on demand and shared by all clients, or compiled before.

The first use of a game or a player loads and compiles it, which takes seconds: call the
methods outside the event loop's thread, except where noted.
"""

import contextlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from azjax.games import Game, State
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
from azjax.play.server.catalog import Catalog, GameOffer, PlayerOffer
from azjax.play.server.comparing import Comparisons
from azjax.play.server.limits import ServerLimits
from azjax.play.server.memory import (
    PROGRAM_BYTES,
    Cache,
    TreeBudget,
    ValueEntry,
    array_bytes,
)
from azjax.play.server.positions import (
    Preview,
    Rules,
    describe_position,
    describe_start,
)
from azjax.play.server.runs import one_line
from azjax.play.server.search_workers import (
    CancelledError,
    Job,
    SearchWorker,
    SessionWorker,
)
from azjax.players import AnyPlayer, ExternalPlayer, MoveDecision, ResignError
from azjax.players.serialization import PLAYER_FILE
from azjax.players.simple import perfect_player

Worker = SearchWorker | SessionWorker
FileTimes = tuple[int, ...]
QUIET_SECONDS = 2.0  # without a waiting client, after which the server is idle
FIRST_SECONDS = 10.0  # in which who starts the server may open a page
NICENESS = 10  # of the thread, on Linux
POLL_INTERVAL = 0.2  # between two checks for active clients (seconds)


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
    cache: loaded players, rules, previews and compared runs.
    trees: budget of search trees.
    compiler: thread that compiles in the background.

    Args:
        limits: see above.
        seed: seed of the players' random choices; None draws one.
    """

    def __init__(self, limits: ServerLimits, seed: int | None = None):
        self.limits, self.seed = limits, seed
        self.activity = Activity()
        self.cache = Cache(limits.memory_bytes)
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
    last_used: time of the last use, for the `Cache`.

    Args:
        game: the game.
        player: the player.
        resources: shared with other players.
        file_times: see above.
        previous: an older version of the player, whose compiled programs are reused
            where the shapes agree.

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
    ):
        self.file_times = file_times
        self._game, self._player, self._resources = game, player, resources
        self._lock = threading.Lock()
        self._workers: dict[SlicePlan | None, Worker] = {}
        self._previous_workers = previous._workers if previous else {}
        self._weight_bytes = array_bytes(player)
        self.last_used = 0
        resources.cache.touch(self)
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
            ValueError: the number is not allowed, or all memory is in use by others.
        """
        plan, player, shared = None, self._player, self._resources
        if not self.strengths:
            simulations = 0
        else:
            simulations = self.default_strength if simulations is None else simulations
            if simulations not in self.strengths:
                allowed = ", ".join(map(str, self.strengths))
                raise ValueError(f"simulations must be one of {allowed}: {simulations}")
            plan = plan_for(simulations)
        with self._lock:
            worker = self._workers.get(plan)
            if worker is None:
                previous = self._previous_workers.pop(plan, None)
                kept = previous if isinstance(previous, SearchWorker) else None
                if isinstance(player, ExternalPlayer):
                    worker = SessionWorker(player, self._game, shared.seed or 0)
                elif kept is not None and kept.search.replace_player(player):
                    worker = kept  # with its compiled programs
                else:
                    worker = SearchWorker(
                        self._search(plan), shared.trees, shared.compiler, shared.seed
                    )
                self._workers[plan] = worker
        self.make_room()
        return worker, simulations

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

    def make_room(self) -> None:
        """Evicts what was used before this player, if the memory is exceeded.

        Raises:
            ValueError: all memory is in use by others.
        """
        if not self._resources.cache.make_room(self):
            raise ValueError(
                "the server's memory is in use by other players; try again in a moment"
            )

    def _search(self, plan: SlicePlan | None) -> IncrementalSearch:
        assert not isinstance(self._player, ExternalPlayer)
        return IncrementalSearch(self._player, plan, self._game.init())


class QueuedPlayer:
    """A loaded player that decides in its workers' queues, one position at a time, as
    for a client that plays without pause.

    It is an external player with one session. Another thread may cancel it.

    is_done: whether it was cancelled.

    Args:
        loaded: the player, with its own number of simulations.
        limits: limits of each search.
    """

    def __init__(self, loaded: LoadedPlayer, limits: ServerLimits):
        self.is_done = False
        self._loaded, self._limits = loaded, limits
        self._changed = threading.Event()

    def start_session(self, game: Game, seed: int) -> "QueuedPlayer":
        """Returns itself."""
        del game, seed
        return self

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Waits for the decision in a position.

        Raises:
            CancelledError: the player was cancelled.
            ResignError: the player resigns.
            ValueError: the decision failed.
        """
        if self.is_done:
            raise CancelledError
        worker, simulations = self._loaded.worker(None)
        job = Job(state, tuple(moves), simulations, self._changed.set, self._limits)
        worker.submit(job)
        while not (self.is_done or job.is_done):
            self._changed.wait()
            self._changed.clear()
        if not job.is_done:
            job.cancel()
            raise CancelledError
        if job.error is not None:
            raise ValueError(job.error)
        if job.is_resigned or job.progress is None:
            raise ResignError("it resigns")
        return job.progress.decision

    def cancel(self) -> None:
        """Ends the running decision, and refuses further ones."""
        self.is_done = True
        self._changed.set()

    def close(self) -> None:
        """Does nothing: the workers are shared."""


class PlayerRegistry:
    """Caches of loaded players, compiled rules and previews; thread-safe.

    catalog: the games, players and runs that exist now.
    limits: limits of client requests.
    activity: open requests.
    cache: loaded players, rules, previews and compared runs.
    comparisons: comparisons of runs.

    Args:
        catalog: the games, players and the directory with runs.
        limits: see above.
        seed: seed of the players' random choices; None draws one.
    """

    def __init__(self, catalog: Catalog, limits: ServerLimits, seed: int | None = None):
        self.catalog, self.limits = catalog, limits
        self._resources = SharedResources(limits, seed)
        self.activity, self.cache = self._resources.activity, self._resources.cache
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self.comparisons = Comparisons(self.cache)

    def is_ready(self, offer: GameOffer, player: PlayerOffer) -> bool:
        """Returns whether a game can start at once; does not block."""
        is_loaded = self.loaded(offer, player) is not None
        return is_loaded and ("rules", offer.key) in self.cache

    def preview(self, offer: GameOffer) -> Preview:
        """Returns the description of a game before its rules are compiled."""
        key = ("preview", offer.key)
        with self._lock_of(key):
            entry = self.cache.get(key)
            if entry is None:
                preview = describe_start(offer.game, offer.key)
                entry = ValueEntry(preview, 4 * len(json.dumps(preview)))
                self.cache[key] = entry
            self.cache.make_room(entry)
            return entry.value

    def rules(self, offer: GameOffer) -> Rules:
        """Returns the compiled rules of a game."""
        limits, key = self.limits, ("rules", offer.key)
        with self._lock_of(key):
            rules = self.cache.get(key)
            if rules is None:
                rules = Rules(offer.game, limits.positions, limits.position_bytes)
                describe_position(rules, ())  # compiles the remaining small programs
                self.cache[key] = rules
            self.cache.touch(rules)
            return rules

    def loaded(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer | None:
        """Returns a player if its newest version is loaded; does not block."""
        found = self.cache.get(("player", offer.key, player.name))
        if found is not None and found.file_times == _file_times(player.directory):
            return found
        return None

    def load(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer:
        """Returns a player; loads it unless its newest version is loaded.

        Raises:
            ValueError: it cannot be loaded, or its search needs too much memory.
        """
        key = ("player", offer.key, player.name)
        # One player at a time is loaded, so that at most one exceeds the memory limit.
        with self._lock_of(key):
            found = self.loaded(offer, player)
            if found is not None:
                self.cache.touch(found)
                return found
            with self._loading:
                file_times = _file_times(player.directory)
                try:
                    made = player.load(offer.game, self.catalog.modules)
                except Exception as error:  # also out of memory: the server must go on
                    # The client must not learn the path of the run.
                    reason = f"{player.name} cannot be loaded: {one_line(error)}"
                    print(f"azjax: {reason}", file=sys.stderr)
                    raise ValueError(f"{player.title} cannot be loaded") from None
                loaded = LoadedPlayer(
                    offer.game,
                    made,
                    self._resources,
                    file_times=file_times,
                    previous=self.cache.get(key),
                )
                self.cache[key] = loaded
                try:
                    loaded.make_room()
                except ValueError:
                    self.cache.pop(key, None)
                    raise
                return loaded

    def describe(self, offer: GameOffer, player: PlayerOffer) -> dict[str, Any]:
        """Returns the description of a game and a player for the page.

        Raises:
            ValueError: the player cannot be loaded, or its search needs too much
                memory.
        """
        loaded = self.load(offer, player)
        self.rules(offer)  # first: the search may compile until the first move
        loaded.warm_up()
        return {**self.preview(offer).description, **loaded.describe(player.title)}

    def solver(self, offer: GameOffer) -> LoadedPlayer | None:
        """Returns the perfect player of a game, None if there is none."""
        solver = PlayerOffer("", "the solver", "perfect")  # no client can name it
        is_known = self.loaded(offer, solver) is not None
        if not is_known and perfect_player(offer.game) is None:
            return None
        return self.load(offer, solver)

    def close(self) -> None:
        """Closes all players; running decisions are dropped."""
        for entry in list(self.cache.values()):
            if isinstance(entry, LoadedPlayer):
                entry.close()
        self._resources.close()

    def _lock_of(self, key: object) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())


def _file_times(directory: Path | None) -> FileTimes:
    """Returns the modification times of a run's player, () without a run."""
    if directory is None:
        return ()
    with contextlib.suppress(OSError):
        return ((directory / "player" / PLAYER_FILE).stat().st_mtime_ns,)
    return ()


class Warmer:
    """Compiles all games in the background, each with its first player.

    It pauses between two compilations while clients are active: a new client competes
    with at most one compilation.

    Args:
        registry: the games and players.
        tell: called with a line of progress.
    """

    def __init__(self, registry: PlayerRegistry, tell: Callable[[str], object]):
        self._registry, self._tell = registry, tell
        self._is_closed = threading.Event()

    def start(self) -> None:
        """Calls `warm_up` in a background thread."""

        def run() -> None:
            if sys.platform == "linux":  # elsewhere this sets the whole process
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
            self.warm_up()

        threading.Thread(target=run, name="azjax-warm-up", daemon=True).start()

    def close(self) -> None:
        """Ends after the current compilation; callable from any thread."""
        self._is_closed.set()

    def warm_up(self) -> None:
        """Compiles all games, and tells how many are ready then: fewer if some were
        evicted from memory."""
        registry, games = self._registry, self._registry.catalog.games
        compiled = [key for key in list(games()) if self._compile(key)]
        if not self._is_closed.is_set():
            offers = [games()[key] for key in compiled if key in games()]
            number = sum(registry.is_ready(offer, _first(offer)) for offer in offers)
            told = f"{number} of {len(games())}"
            self._tell(f"{told} games are compiled; their pages open at once.")

    def _compile(self, key: str) -> bool:
        """Compiles a game in steps; returns whether none of them failed."""
        registry = self._registry
        steps = (
            registry.preview,
            registry.rules,
            lambda offer: registry.load(offer, _first(offer)).compile(),
        )
        try:
            for step in steps:
                while registry.activity.is_busy and not self._is_closed.is_set():
                    self._is_closed.wait(POLL_INTERVAL)
                offer = registry.catalog.games().get(key)
                if self._is_closed.is_set() or offer is None:  # its run was deleted
                    return False
                step(offer)
        except Exception:  # clients of that game receive the error
            traceback.print_exc(file=sys.stderr)
            return False
        return True


def _first(offer: GameOffer) -> PlayerOffer:
    return next(iter(offer.players.values()))
