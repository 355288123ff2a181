"""One visitor: a WebSocket over which a page asks and is answered."""

import asyncio
import contextlib
import functools
import json
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

from azjax.play.server.catalog import GameOffer, PlayerOffer
from azjax.play.server.describing import (
    RESIGNATION,
    describe_decision,
    describe_position,
)
from azjax.play.server.house import House
from azjax.play.server.jobs import Job, report
from azjax.play.server.messages import (
    AskDecision,
    AskMove,
    AskMoves,
    AskPosition,
    Message,
    MessageError,
    Start,
    Stop,
    parse,
)
from azjax.play.server.replaying import describe_moves
from azjax.play.server.rules import Rules
from azjax.play.server.workers import Workers

MOST_ACTIONS = 10_000  # of a visitor that has not begun
PREPARING = "Loading the player and compiling the rules"
LOADING = "Loading the newer player"
FAREWELL = 2.0  # that a visitor has to say goodbye (seconds)
GONE, ABUSE, FULL = 1001, 1008, 1013  # RFC 6455, section 7.4.1


class Pace:
    """Says how long a visitor must wait so that it asks no more often than it may."""

    def __init__(self, per_second: float, burst: int):
        self._per_second, self._burst = per_second, float(burst)
        self._left, self._at = float(burst), time.monotonic()

    def wait(self) -> float:
        """Counts a message; returns the seconds until the next one may be read."""
        now = time.monotonic()
        self._left += (now - self._at) * self._per_second
        self._left, self._at = min(self._left, self._burst) - 1, now
        return max(0.0, -self._left / self._per_second)


class Met(NamedTuple):
    """Whom a visitor plays against, and by which rules."""

    offer: GameOffer
    player: PlayerOffer
    rules: Rules


class Connection:
    """Answers what comes over one WebSocket, until it ends.

    began: whether a game was chosen.
    heard_at: when the last message came.

    Args:
        socket: accepted.
        house: what there is to play with.
        workers: do what takes more than a moment.
    """

    def __init__(self, socket: WebSocket, house: House, workers: Workers):
        self.began = False
        self.heard_at = time.monotonic()
        self._socket, self._house, self._workers = socket, house, workers
        self._limits = house.limits
        self._met: Met | None = None
        self._turn = 0  # of the newest thought; older ones are given up
        self._job: Job | None = None
        self._news = asyncio.Event()
        self._decisions: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()

    async def serve(self) -> None:
        """Answers until the visitor leaves or is dropped."""
        try:
            await self._listen()
        except WebSocketDisconnect:
            pass
        finally:
            self._give_up()
            for task in self._decisions:
                task.cancel()

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Who has the lowest is dropped first where there is no room for all."""
        return self.began, bool(self._decisions), self.heard_at

    async def drop(self, code: int, reason: str) -> None:
        """Ends the connection, whatever the visitor does."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await self._socket.close(code, reason)

    async def _listen(self) -> None:
        pace = Pace(self._limits.messages_per_second, self._limits.message_burst)
        num_bad = 0
        while True:
            limits = self._limits
            patience = limits.idle_seconds if self.began else limits.begin_seconds
            try:
                async with asyncio.timeout(patience):
                    text = await self._receive()
            except TimeoutError:
                return await self.drop(GONE, "nothing was heard for too long")
            self.heard_at = time.monotonic()
            if not await self._answer(text):
                num_bad += 1
                if num_bad > limits.bad_messages:
                    return await self.drop(ABUSE, "too much could not be understood")
            await asyncio.sleep(pace.wait())

    async def _receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", GONE))
        return message.get("text") or message.get("bytes") or b""

    async def _answer(self, text: str | bytes) -> bool:
        """Answers a message; returns whether it could be understood."""
        most = self._met.rules.game.max_moves if self._met else MOST_ACTIONS
        try:
            message = parse(text, most)
        except MessageError as error:
            await self._send(error.id, "error", str(error))
            return False
        async with self._telling_errors(message.id):
            value = await self._do(message)
            if not isinstance(message, AskDecision):  # a thought comes later
                await self._send(message.id, "answer", value)
        return True

    @contextlib.asynccontextmanager
    async def _telling_errors(self, id: int) -> AsyncIterator[None]:
        """A context that sends every error to the visitor, except the end of the
        connection."""
        try:
            yield
        except WebSocketDisconnect:
            raise
        except ValueError as error:
            await self._send(id, "error", str(error))
        except Exception as error:
            await self._send(id, "error", report(error))

    async def _do(self, message: Message) -> Any:
        """Does what a message says; returns the answer, None for a thought, which
        comes later."""
        match message:
            case Start():
                return await self._start(message)
            case Stop():
                self._give_up()
                return None
        if self._met is None:
            raise ValueError("the first message must be start")
        match message:
            case AskPosition():
                rules = self._met.rules
                return await self._workers.do(describe_position, rules, message.actions)
            case AskMoves():
                rules = self._met.rules
                return await self._workers.do(describe_moves, rules, message.actions)
            case AskMove():
                rules = self._met.rules
                return await self._workers.do(rules.read, message.actions, message.text)
            case AskDecision():
                self._give_up()
                self._begin_to_think(message)
        return None

    async def _start(self, message: Start) -> dict[str, Any]:
        self._give_up()
        house = self._house
        offer, player = await self._workers.do(house.find, message.game, message.player)

        def begin():
            description = house.describe(offer, player)
            return Met(offer, player, house.rules(offer)), description

        house.num_starts += 1
        try:
            if not house.is_ready(offer, player):
                await self._preview(message.id, offer)
            key = ("start", message.game, message.player)
            self._met, description = await self._workers.do_once(key, begin)
        finally:
            house.num_starts -= 1
            house.answered_at = time.monotonic()
        self.began = True
        return description

    async def _preview(self, id: int, offer: GameOffer) -> None:
        """Sends what can be drawn while the player is loaded and the rules compiled."""
        key = ("preview", offer.key)
        preview = await self._workers.do_once(key, self._house.preview, offer)
        await self._send(id, "stage", PREPARING)
        await self._send(id, "progress", preview._asdict())

    def _begin_to_think(self, message: AskDecision) -> None:
        if self._house.num_decisions >= self._limits.decisions:
            raise ValueError("too many thoughts are asked for; try again in a moment")

        def end(task):
            self._decisions.discard(task)
            self._house.num_decisions -= 1
            self._house.answered_at = time.monotonic()

        task = asyncio.create_task(self._think(message, self._turn))
        self._decisions.add(task)
        self._house.num_decisions += 1
        task.add_done_callback(end)

    async def _think(self, message: AskDecision, turn: int) -> None:
        """Sends what is thought from time to time, and at the end."""
        with contextlib.suppress(WebSocketDisconnect):
            async with self._telling_errors(message.id):
                value = await self._thought(message, turn)
                await self._send(message.id, "answer", value)

    async def _thought(self, message: AskDecision, turn: int) -> dict[str, Any] | None:
        """Returns the thought, None if it was given up.

        Raises:
            ValueError: there is none.
        """
        assert self._met is not None
        offer, player, rules = self._met
        news = asyncio.Event()
        loop = asyncio.get_running_loop()

        def notify():
            with contextlib.suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(news.set)

        host = self._house.loaded(offer, player)
        if host is None:  # there is a newer one
            await self._send(message.id, "stage", LOADING)
            key = ("host", offer.key, player.name)
            host = await self._workers.do_once(key, self._house.host, offer, player)

        def ask():
            state = rules.state(message.actions)
            if state.terminated:
                raise ValueError("the game is over")
            table, simulations = host.table(message.simulations)
            return table, Job(state, message.actions, simulations, notify, self._limits)

        table, job = await self._workers.do(ask)
        if turn != self._turn:
            return None
        self._job, self._news = job, news
        table.ask(job)
        while True:
            await news.wait()
            news.clear()
            if turn != self._turn:
                return None
            if job.error is not None:
                raise ValueError(job.error)
            if job.is_resigned:
                return RESIGNATION
            is_done, found = job.is_done, job.found
            if found is None:
                if job.stage is not None:
                    await self._send(message.id, "stage", job.stage)
                continue
            describe = functools.partial(
                describe_decision,
                with_tree=is_done and message.tree,
                is_cut=job.is_cut,
            )
            value = await self._workers.do(describe, rules, job.state, *found)
            if turn != self._turn:
                return None
            if is_done:
                return value
            await self._send(message.id, "progress", value)

    def _give_up(self) -> None:
        """Lets go of the thought that is under way."""
        self._turn += 1
        if self._job is not None:
            self._job.give_up()
            self._job = None
            self._news.set()

    async def _send(self, id: int | None, kind: str, value: Any) -> None:
        """Sends a message; a visitor that does not take it is dropped.

        Raises:
            WebSocketDisconnect: there is nobody any more.
        """
        text = json.dumps({"id": id, "kind": kind, "value": value}, allow_nan=False)
        try:
            async with asyncio.timeout(self._limits.send_seconds), self._sending:
                await self._socket.send_text(text)
        except TimeoutError:
            await self.drop(GONE, "nothing was taken for too long")
            raise WebSocketDisconnect(GONE) from None
        except RuntimeError:  # it was closed meanwhile
            raise WebSocketDisconnect(GONE) from None
