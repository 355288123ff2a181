"""One client: a WebSocket over which a page sends requests."""

import asyncio
import contextlib
import functools
import json
import time
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from azjax.play.server.catalog import GameOffer, PlayerOffer
from azjax.play.server.messages import (
    DecisionRequest,
    MessageError,
    ReadRequest,
    ReviewRequest,
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
)
from azjax.play.server.registry import PlayerRegistry, QueuedPlayer
from azjax.play.server.search_workers import Job, SessionWorker, report

T = TypeVar("T")
MAX_ACTIONS = 10_000  # of a request before a game has started
PREPARING = "Loading the player and compiling the rules"
SETTING_UP = "Setting up the position"
LOADING = "Loading the newer player"
CLOSE_SECONDS = 2.0  # for the closing handshake


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


GOING_AWAY, POLICY_VIOLATION, TRY_AGAIN_LATER = 1001, 1008, 1013  # RFC 6455, 7.4.1


class RateLimiter:
    """A token bucket.

    Args:
        per_second: tokens that are added each second.
        burst: capacity.
    """

    def __init__(self, per_second: float, burst: int):
        self._per_second, self._burst = per_second, float(burst)
        self._tokens, self._updated = float(burst), time.monotonic()

    def wait(self) -> float:
        """Takes a token; returns the seconds until the next message may be read."""
        now = time.monotonic()
        self._tokens += (now - self._updated) * self._per_second
        self._tokens, self._updated = min(self._tokens, self._burst) - 1, now
        return max(0.0, -self._tokens / self._per_second)


class StartedGame(NamedTuple):
    """The game and player that a client has started."""

    offer: GameOffer
    player: PlayerOffer
    rules: Rules


class Connection:
    """Answers the requests of one WebSocket until it closes.

    has_started: whether a game was started.
    last_message: time of the last message (seconds, monotonic clock).

    Args:
        socket: accepted.
        registry: the players.
        pools: run blocking functions.
    """

    def __init__(self, socket: WebSocket, registry: PlayerRegistry, pools: ThreadPools):
        self.has_started = False
        self.last_message = time.monotonic()
        self._socket, self._registry, self._pools = socket, registry, pools
        self._limits = registry.limits
        self._game: StartedGame | None = None
        self._turn = 0  # number of the newest decision; older ones are cancelled
        self._job: Job | QueuedPlayer | None = None
        self._changed = asyncio.Event()
        self._decisions: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()

    async def serve(self) -> None:
        """Answers requests until the connection closes."""
        limits, num_bad = self._limits, 0
        limiter = RateLimiter(limits.messages_per_second, limits.message_burst)
        try:
            while True:
                has_started = self.has_started
                patience = limits.idle_seconds if has_started else limits.start_seconds
                try:
                    async with asyncio.timeout(patience):
                        received = await self._socket.receive()
                except TimeoutError:
                    reason = "the connection was idle too long"
                    return await self.close(GOING_AWAY, reason)
                if received["type"] == "websocket.disconnect":
                    return
                self.last_message = time.monotonic()
                text = received.get("text") or received.get("bytes") or b""
                num_bad += not await self._answer(text)
                if num_bad > limits.bad_messages:
                    reason = "too many malformed messages"
                    return await self.close(POLICY_VIOLATION, reason)
                await asyncio.sleep(limiter.wait())
        except WebSocketDisconnect:
            pass
        finally:
            self._cancel_decision()
            for task in self._decisions:
                task.cancel()

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The connection with the lowest rank is closed first if there are too many."""
        return self.has_started, bool(self._decisions), self.last_message

    async def close(self, code: int, reason: str) -> None:
        """Closes the connection, even if the client does not react."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.close(code, reason)

    async def _answer(self, text: str | bytes) -> bool:
        """Executes a request and answers it, decisions and reviews later; returns
        whether the message is well-formed."""
        game = self._game
        try:
            message = parse(text, game.rules.game.max_moves if game else MAX_ACTIONS)
        except MessageError as error:
            await self._send(error.id, "error", str(error))
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
                case ReadRequest():
                    # A long game takes a second; a client waits before the next.
                    key = game.rules.game, message.text
                    read = self._pools.run_shared
                    value = await read(key, answer, game.rules, message)
                case _:
                    value = await self._pools.run(answer, game.rules, message)
            await self._send(message.id, "answer", value)
        return True

    @contextlib.asynccontextmanager
    async def _sending_errors(self, id: int) -> AsyncIterator[None]:
        """Sends all errors to the client, except that the connection is closed."""
        try:
            yield
        except WebSocketDisconnect:
            raise
        except ValueError as error:
            await self._send(id, "error", str(error))
        except Exception as error:
            await self._send(id, "error", report(error))

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
                await self._send(message.id, "stage", PREPARING)
                await self._send(
                    message.id,
                    "progress",
                    {"description": preview.description, "position": preview.position},
                )
            elif message.setup:
                await self._send(message.id, "stage", SETTING_UP)
            key = ("start", *message[1:])
            self._game, description = await self._pools.run_shared(key, start)
        finally:
            registry.activity.num_starts -= 1
            registry.activity.last_answer = time.monotonic()
        self.has_started = True
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
            with contextlib.suppress(WebSocketDisconnect):
                async with self._sending_errors(message.id):
                    if isinstance(message, ReviewRequest):
                        value = await self._review(message, turn)
                    else:
                        value = await self._decide(message, turn)
                    await self._send(message.id, "answer", value)

        task = asyncio.create_task(send_answer(self._turn))
        self._decisions.add(task)
        activity.num_decisions += 1
        activity.num_reviews += is_review
        task.add_done_callback(end)

    async def _review(self, message: ReviewRequest, turn: int) -> dict[str, Any] | None:
        """Returns what holds for the whole game, None if the review was cancelled."""
        assert self._game is not None
        registry, rules = self._registry, self._game.rules
        find, name = registry.catalog.find, self._game.offer.key
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

        def report(move):
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(moves.put_nowait, move)

        arguments = (rules, message.actions, reviewer, solving, report)
        running = asyncio.ensure_future(
            self._pools.run_long(describe_review, *arguments)
        )

        def end(done):
            moves.put_nowait(None)
            if not done.cancelled():
                done.exception()  # marks it as retrieved if this task is cancelled

        running.add_done_callback(end)
        while (move := await moves.get()) is not None:
            await self._send(message.id, "progress", move)
        return await running

    async def _decide(
        self, message: DecisionRequest, turn: int
    ) -> dict[str, Any] | None:
        """Returns the decision, None if it was cancelled."""
        assert self._game is not None
        offer, player, rules = self._game
        loaded = self._registry.loaded(offer, player)
        if loaded is None:  # evicted, or there is a newer version
            await self._send(message.id, "stage", LOADING)
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
                    await self._send(message.id, "stage", job.stage)
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
            await self._send(message.id, "progress", value)

    def _cancel_decision(self) -> None:
        self._turn += 1
        if self._job is not None:
            self._job.cancel()
            self._job = None
            self._changed.set()

    async def _send(self, id: int | None, kind: str, value: Any) -> None:
        """Sends a message; closes the connection if the client does not receive it.

        Raises:
            WebSocketDisconnect: the connection is closed.
        """
        text = json.dumps({"id": id, "kind": kind, "value": value}, allow_nan=False)
        try:
            async with asyncio.timeout(self._limits.send_seconds), self._sending:
                await self._socket.send_text(text)
        except TimeoutError:
            await self.close(GOING_AWAY, "the client does not receive messages")
            raise WebSocketDisconnect(GOING_AWAY) from None
        except RuntimeError:  # closed by another task
            raise WebSocketDisconnect(GOING_AWAY) from None
