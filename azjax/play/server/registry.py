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
from azjax.play.server.limits import ServerLimits
from azjax.play.server.memory import (
    PROGRAM_BYTES,
    Cache,
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
    TreeBudget,
    Worker,
)
from azjax.players import AnyPlayer, ExternalPlayer, MoveDecision, ResignError
from azjax.players.simple import perfect_player

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


class LoadedPlayer:
    """A loaded player and its workers, one for each slice plan.

    strengths: allowed numbers of simulations, ascending; empty if the player does not
        search or cannot be given a number.
    default_strength: the largest allowed number up to the player's own; None if
        `strengths` is empty.

    Args:
        game: the game.
        player: the player.
        registry: the loaded players that share its memory.
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
        registry: "PlayerRegistry",
        previous: "LoadedPlayer | None" = None,
    ):
        self._game, self._player, self._registry = game, player, registry
        self._lock = threading.Lock()
        self._weight_bytes = array_bytes(player)
        self.strengths: list[int] = []
        own = getattr(player, "simulations", 0)
        is_external = isinstance(player, ExternalPlayer)
        if not is_external and sliced_player(player, plan_for(1)) is not None:
            limits = registry.limits
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
        self._workers: dict[SlicePlan | None, SearchWorker | SessionWorker] = {}
        if previous is not None and not isinstance(player, ExternalPlayer):
            for plan, worker in list(previous._workers.items()):
                is_search = isinstance(worker, SearchWorker)
                if is_search and worker.search.replace_player(player):
                    self._workers[plan] = worker  # with its compiled programs

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

        Players that were used before this one are evicted if the memory is exceeded.

        Args:
            simulations: the requested number; None means the default.

        Raises:
            ValueError: the number is not allowed, or all memory is in use by others.
        """
        plan, player, shared = None, self._player, self._registry
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
                if isinstance(player, ExternalPlayer):
                    worker = SessionWorker(player, self._game, shared.seed or 0)
                else:
                    search, trees = self._search(plan), shared.trees
                    worker = SearchWorker(search, trees, shared.compiler, shared.seed)
                self._workers[plan] = worker
        if not shared.cache.make_room(self):
            raise ValueError(
                "the server's memory is in use by other players; try again in a moment"
            )
        return worker, simulations

    def warm_up(self) -> None:
        """Compiles the default search in the background."""
        worker, _ = self.worker(None)
        if isinstance(worker, SearchWorker):
            activity = self._registry.activity
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
        searches = [
            worker.search
            for worker in list(self._workers.values())
            if isinstance(worker, SearchWorker)
        ]
        num_programs = sum(max(1, len(search.sizes)) for search in searches)
        return self._weight_bytes + PROGRAM_BYTES * num_programs

    @property
    def is_busy(self) -> bool:
        """Whether a worker is busy; an external program is never evicted."""
        is_external = isinstance(self._player, ExternalPlayer)
        return is_external or any(w.is_busy for w in list(self._workers.values()))

    def shrink(self) -> None:
        """Drops idle workers. A worker that a request already holds still serves it."""
        for plan, worker in list(self._workers.items()):
            if isinstance(worker, SearchWorker) and not worker.is_busy:
                self._workers.pop(plan, None)

    def close(self) -> None:
        """Closes the workers."""
        for worker in list(self._workers.values()):
            worker.close()

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
    """Loaded players, compiled rules and previews, which share a memory; thread-safe.

    catalog: the games, players and runs that exist now.
    limits: limits of client requests.
    seed: seed of the players' random choices.
    activity: open requests.
    cache: loaded players, rules, previews and compared runs.
    trees: budget of the search trees.
    compiler: thread that compiles in the background.

    Args:
        catalog: the games, players and the directory with runs.
        limits: see above.
        seed: see above; None draws one.
    """

    def __init__(self, catalog: Catalog, limits: ServerLimits, seed: int | None = None):
        self.catalog, self.limits, self.seed = catalog, limits, seed
        self.activity = Activity()
        self.cache = Cache(limits.memory_bytes)
        self.trees = TreeBudget(limits.search_bytes)
        self.compiler = ThreadPoolExecutor(1, thread_name_prefix="azjax-compile")
        self._loading = threading.Lock()

    def is_ready(self, offer: GameOffer, player: PlayerOffer) -> bool:
        """Returns whether a game can start at once; does not block."""
        is_loaded = self.loaded(offer, player) is not None
        return is_loaded and self.cache.get(("rules", offer.key)) is not None

    def preview(self, offer: GameOffer) -> Preview:
        """Returns the description of a game before its rules are compiled."""

        def make(_: object) -> ValueEntry:
            preview = describe_start(offer.game, offer.key)
            return ValueEntry(preview, 4 * len(json.dumps(preview)))

        return self.cache.load(("preview", offer.key), make).value

    def rules(self, offer: GameOffer) -> Rules:
        """Returns the compiled rules of a game."""

        def make(_: object) -> Rules:
            limits = self.limits
            rules = Rules(offer.game, limits.positions, limits.position_bytes)
            describe_position(rules, ())  # compiles the remaining small programs
            return rules

        return self.cache.load(("rules", offer.key), make)

    def loaded(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer | None:
        """Returns a player if its newest version is loaded; does not block."""
        return self.cache.get(("player", offer.key, player.name), player.version())

    def load(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer:
        """Returns a player; loads it unless its newest version is loaded.

        Raises:
            ValueError: it cannot be loaded, or its search needs too much memory.
        """

        def make(previous: LoadedPlayer | None) -> LoadedPlayer:
            # One player at a time, so that at most one exceeds the memory limit.
            with self._loading:
                try:
                    made = player.load(offer.game, self.catalog.modules)
                except Exception as error:  # also out of memory: the server must go on
                    # The client must not learn the path of the run.
                    reason = f"{player.name} cannot be loaded: {one_line(error)}"
                    print(f"azjax: {reason}", file=sys.stderr)
                    raise ValueError(f"{player.title} cannot be loaded") from None
                return LoadedPlayer(offer.game, made, self, previous)

        key = ("player", offer.key, player.name)
        return self.cache.load(key, make, player.version())

    def describe(self, offer: GameOffer, player: PlayerOffer) -> dict[str, Any]:
        """Returns the description of a game and a player for the page.

        Raises:
            ValueError: the player cannot be loaded, or its search needs too much
                memory.
        """
        described = self.preview(offer).description
        self.rules(offer)  # first: the search may compile until the first move
        loaded = self.load(offer, player)
        loaded.warm_up()
        return {**described, **loaded.describe(player.title)}

    def solver(self, offer: GameOffer) -> LoadedPlayer | None:
        """Returns the perfect player of a game; None if there is none, and in games
        with chance, in which it gives no exact results."""
        if offer.game.num_outcomes:
            return None
        solver = PlayerOffer("", "the solver", "perfect")  # no client can name it
        is_known = self.loaded(offer, solver) is not None
        if not is_known and perfect_player(offer.game) is None:
            return None
        return self.load(offer, solver)

    def close(self) -> None:
        """Closes all players; running decisions are dropped."""
        for entry in self.cache.entries():
            if isinstance(entry, LoadedPlayer):
                entry.close()
        self.compiler.shutdown(wait=False, cancel_futures=True)


def start_compiling(registry: PlayerRegistry, tell: Callable[[str], object]) -> None:
    """Calls `compile_games` in a background thread."""

    def run() -> None:
        if sys.platform == "linux":  # elsewhere this sets the whole process
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        compile_games(registry, tell)

    threading.Thread(target=run, name="azjax-compile-games", daemon=True).start()


def compile_games(registry: PlayerRegistry, tell: Callable[[str], object]) -> None:
    """Compiles all games, each with its first player.

    At the end it tells how many are ready: fewer if some were evicted from memory. It
    pauses between two compilations while clients are active: a new client competes
    with at most one compilation.

    Args:
        registry: the games and players.
        tell: called with a line of progress.
    """

    def first(offer: GameOffer) -> PlayerOffer:
        return next(iter(offer.players.values()))

    steps = (
        registry.preview,
        registry.rules,
        lambda offer: registry.load(offer, first(offer)).compile(),
    )
    games, compiled = registry.catalog.games, []
    for key in list(games()):
        try:
            for step in steps:
                while registry.activity.is_busy:
                    time.sleep(POLL_INTERVAL)
                offer = games().get(key)
                if offer is None:  # its run was deleted
                    break
                step(offer)
            else:
                compiled.append(key)
        except Exception:  # clients of that game receive the error
            traceback.print_exc(file=sys.stderr)
    offers = [games()[key] for key in compiled if key in games()]
    number = sum(registry.is_ready(offer, first(offer)) for offer in offers)
    told = f"{number} of {len(games())}"
    tell(f"{told} games are compiled; their pages open at once.")
