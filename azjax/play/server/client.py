"""One client: a page whose requests are answered, however its messages arrive."""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from azjax.games.host import waits_for_chance
from azjax.play.server.catalog import GameOffer, PlayerOffer
from azjax.play.server.messages import (
    DecisionRequest,
    MessageError,
    ReadRequest,
    ReviewRequest,
    RollRequest,
    StartRequest,
    StopRequest,
    parse,
)
from azjax.play.server.positions import (
    RESIGNATION,
    Rules,
    answer,
    describe_decision,
    describe_review,
    describe_roll,
)
from azjax.play.server.registry import PlayerRegistry, QueuedPlayer
from azjax.play.server.search_workers import Job, SessionWorker, report

T = TypeVar("T")
MAX_ACTIONS = 10_000  # of a request before a game has started
PREPARING = "Loading the player and compiling the rules"
SETTING_UP = "Setting up the position"
LOADING = "Loading the newer player"


class ThreadPools:
    """Thread pools for functions of milliseconds, of seconds and of minutes.

    Used by the event loop's thread only.

    Args:
        num_long: number of functions that may take minutes.
    """

    def __init__(self, num_long: int = 1) -> None:
        self._quick = ThreadPoolExecutor(4, "azjax-quick")
        self._slow = ThreadPoolExecutor(8, "azjax-slow")
        self._long = ThreadPoolExecutor(num_long, "azjax-long")
        self._running: dict[Hashable, asyncio.Future[Any]] = {}

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Returns the result of a function that takes milliseconds."""
        return await _start(self._quick, function, *args)

    async def run_shared(
        self, key: Hashable, function: Callable[..., T], *args: Any
    ) -> T:
        """Returns the result of a function that takes seconds; concurrent calls with
        the same key share one execution."""
        task = self._running.get(key)
        if task is None:
            task = _start(self._slow, function, *args)
            self._running[key] = task

            def end(done: asyncio.Future[Any]) -> None:
                del self._running[key]
                if not done.cancelled():
                    done.exception()  # marks it as retrieved if all were cancelled

            task.add_done_callback(end)
        # A cancelled caller must not cancel the others.
        return await asyncio.shield(task)

    async def run_long(self, function: Callable[..., T], *args: Any) -> T:
        """Returns the result of a function that may take minutes."""
        return await _start(self._long, function, *args)

    def close(self) -> None:
        """Cancels the functions that have not started."""
        for pool in (self._quick, self._slow, self._long):
            pool.shutdown(wait=False, cancel_futures=True)


def _start(
    pool: ThreadPoolExecutor, function: Callable[..., T], *args: Any
) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(pool, function, *args)


class ClosedError(Exception):
    """The client is gone."""


class StartedGame(NamedTuple):
    """The game and player that a client has started."""

    offer: GameOffer
    player: PlayerOffer
    rules: Rules


class Client:
    """Answers the requests of a page, in the event loop's thread.

    Subclasses define `send`.

    game: the started game, None before the first.

    Args:
        registry: the players.
        pools: run blocking functions.
        game: see above.
        seed: seed of the outcomes of chance; None draws one.
    """

    def __init__(
        self,
        registry: PlayerRegistry,
        pools: ThreadPools,
        game: StartedGame | None = None,
        seed: int | None = None,
    ):
        self.game = game
        self._registry, self._pools = registry, pools
        self._limits = registry.limits
        self._rng = np.random.default_rng(seed)  # of the outcomes of chance
        self._turn = 0  # number of the newest decision; older ones are cancelled
        self._job: Job | QueuedPlayer | None = None
        self._changed = asyncio.Event()
        self._decisions: set[asyncio.Task[None]] = set()

    async def send(self, id: int | None, kind: str, value: Any) -> None:
        """Sends a message, which is the answer to one or precedes it.

        Raises:
            ClosedError: the client is gone.
        """
        raise NotImplementedError

    @property
    def is_deciding(self) -> bool:
        """Whether a decision or review is not answered yet."""
        return bool(self._decisions)

    def stop(self) -> None:
        """Cancels the decision or review, which is not answered."""
        self._cancel_decision()
        for task in self._decisions:
            task.cancel()

    async def answer(self, text: str | bytes) -> bool:
        """Executes a request and answers it, decisions and reviews later; returns
        whether the message is well-formed."""
        game = self.game
        try:
            message = parse(text, game.rules.max_actions if game else MAX_ACTIONS)
        except MessageError as error:
            await self.send(error.id, "error", str(error))
            return False
        async with self._sending_errors(message.id):
            value = None
            match message:
                case StartRequest():
                    value = await self._start(message)
                case StopRequest():
                    self._cancel_decision()
                case _ if game is None:
                    raise ValueError("the first message must be start")
                case DecisionRequest() | ReviewRequest():
                    if isinstance(message, ReviewRequest) and game.rules.setup:
                        raise ValueError(
                            "a game from a set-up position is not reviewed"
                        )
                    self._cancel_decision()
                    self._start_decision(message)
                    return True
                case RollRequest():
                    roll, actions = describe_roll, message.actions
                    value = await self._pools.run(roll, game.rules, actions, self._rng)
                case ReadRequest():
                    # A long game takes a second; a client waits before the next.
                    key = game.rules.game, message.text
                    read = self._pools.run_shared
                    value = await read(key, answer, game.rules, message)
                case _:
                    value = await self._pools.run(answer, game.rules, message)
            await self.send(message.id, "answer", value)
        return True

    @contextlib.asynccontextmanager
    async def _sending_errors(self, id: int) -> AsyncIterator[None]:
        """Sends all errors to the client, except that it is gone."""
        try:
            yield
        except ClosedError:
            raise
        except ValueError as error:
            await self.send(id, "error", str(error))
        except Exception as error:
            await self.send(id, "error", report(error))

    async def _start(self, message: StartRequest) -> dict[str, Any]:
        self._cancel_decision()
        registry = self._registry
        find = registry.catalog.find
        offer, player = await self._pools.run(find, message.game, message.player)

        def start():
            description, rules = registry.describe(offer, player), registry.rules(offer)
            if message.setup:
                rules = rules.set_up(message.setup)
            return StartedGame(offer, player, rules), description

        registry.activity.num_starts += 1
        try:
            if not registry.is_ready(offer, player):
                # The first position, while the player loads and the rules compile.
                key = ("preview", offer.key)
                preview = await self._pools.run_shared(key, registry.preview, offer)
                await self.send(message.id, "stage", PREPARING)
                await self.send(
                    message.id,
                    "progress",
                    {"description": preview.description, "position": preview.position},
                )
            elif message.setup:
                await self.send(message.id, "stage", SETTING_UP)
            key = ("start", *message[1:])
            self.game, description = await self._pools.run_shared(key, start)
        finally:
            registry.activity.num_starts -= 1
            registry.activity.last_answer = time.monotonic()
        return description

    def _start_decision(self, message: DecisionRequest | ReviewRequest) -> None:
        activity, limits = self._registry.activity, self._limits
        is_review = isinstance(message, ReviewRequest)
        is_busy = activity.num_decisions >= limits.decisions
        if is_busy or (is_review and activity.num_reviews >= limits.reviews):
            raise ValueError("the server is busy; try again in a moment")

        def end(task):
            self._decisions.discard(task)
            activity.num_decisions -= 1
            activity.num_reviews -= is_review
            activity.last_answer = time.monotonic()

        async def send_answer(turn: int) -> None:
            with contextlib.suppress(ClosedError):
                async with self._sending_errors(message.id):
                    if isinstance(message, ReviewRequest):
                        value = await self._review(message, turn)
                    else:
                        value = await self._decide(message, turn)
                    await self.send(message.id, "answer", value)

        task = asyncio.create_task(send_answer(self._turn))
        self._decisions.add(task)
        activity.num_decisions += 1
        activity.num_reviews += is_review
        task.add_done_callback(end)

    async def _review(self, message: ReviewRequest, turn: int) -> dict[str, Any] | None:
        """Returns what holds for the whole game, None if the review was cancelled."""
        assert self.game is not None
        registry, rules = self._registry, self.game.rules
        find, name = registry.catalog.find, self.game.offer.key
        offer, player = await self._pools.run(find, name, message.player)
        key = ("load", offer.key, player.name)
        loaded = await self._pools.run_shared(key, registry.load, offer, player)
        key = ("solver", offer.key)
        solver = await self._pools.run_shared(key, registry.solver, offer)
        if turn != self._turn:
            return None
        self._job = reviewer = QueuedPlayer(loaded, self._limits)
        solving = None if solver is None else QueuedPlayer(solver, self._limits)
        loop, moves = asyncio.get_running_loop(), asyncio.Queue()

        def tell(move):
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(moves.put_nowait, move)

        arguments = (rules, message.actions, reviewer, solving, tell)
        running = asyncio.ensure_future(
            self._pools.run_long(describe_review, *arguments)
        )

        def end(done):
            moves.put_nowait(None)
            if not done.cancelled():
                done.exception()  # marks it as retrieved if this task is cancelled

        running.add_done_callback(end)
        while (move := await moves.get()) is not None:
            await self.send(message.id, "progress", move)
        return await running

    async def _decide(
        self, message: DecisionRequest, turn: int
    ) -> dict[str, Any] | None:
        """Returns the decision, None if it was cancelled."""
        assert self.game is not None
        offer, player, rules = self.game
        loaded = self._registry.loaded(offer, player)
        if loaded is None:  # evicted, or there is a newer version
            await self.send(message.id, "stage", LOADING)
            key, load = ("load", offer.key, player.name), self._registry.load
            loaded = await self._pools.run_shared(key, load, offer, player)
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def notify():
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(changed.set)

        def make():
            state = rules.state(message.actions)
            if state.terminated:
                raise ValueError("the game is over")
            if waits_for_chance(rules.game, state):
                raise ValueError("the position waits for chance: nobody is to move")
            worker, simulations = loaded.worker(message.simulations)
            if rules.setup and isinstance(worker, SessionWorker):
                raise ValueError("this opponent plays from the first position only")
            job = Job(state, message.actions, simulations, notify, self._limits)
            return worker, job

        worker, job = await self._pools.run(make)
        if turn != self._turn:
            return None
        self._job, self._changed = job, changed
        worker.submit(job)
        while True:
            await changed.wait()
            changed.clear()
            if turn != self._turn:
                return None
            if job.error is not None:
                raise ValueError(job.error)
            if job.is_resigned:
                return RESIGNATION
            is_done = job.is_done
            if job.progress is None:
                if job.stage is not None:
                    await self.send(message.id, "stage", job.stage)
                continue
            describe = functools.partial(
                describe_decision,
                with_tree=is_done and message.tree,
                is_timed_out=job.is_timed_out,
            )
            value = await self._pools.run(describe, rules, job.state, *job.progress)
            if turn != self._turn:
                return None
            if is_done:
                return value
            await self.send(message.id, "progress", value)

    def _cancel_decision(self) -> None:
        self._turn += 1
        if self._job is not None:
            self._job.cancel()
            self._job = None
            self._changed.set()
