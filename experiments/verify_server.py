"""Plays against `azjax serve` as many visitors at once, with and without hostile ones.

    python experiments/verify_server.py
    python experiments/verify_server.py --visitors 10 --seconds 20 --idle-sockets 200

Starts the server on a free port. Visitors play whole games, mostly Connect Four against
the network that ships, as fast as they are answered, and check every position, result
and thought against the rules. Then they do so again while others send what is no JSON,
huge messages and bodies, wrong moves and addresses, and leave thousands of sockets open
that say nothing. Ends with an error if anything was answered wrongly, or a game was
lost.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import tyro
import websockets
from websockets.asyncio.client import ClientConnection, connect

from azjax import games
from azjax.play.server.connections import allow_files
from azjax.play.server.rules import Rules

HUGE = 20_000_000  # bytes
SPARE_FILES = 100
ARRIVAL = 5.0  # until all idle sockets are there (seconds)
PATIENCE = 300.0  # for an answer, compilation included (seconds)
PAGES = (
    *("/lobby.json", "/play/connect_four/", "/play/connect_four/config.json"),
    *("/play/connect_four/app.js", "/play/chess/style.css"),
)
TRICKS = (
    *("/play/../../etc/passwd", "/play/%2e%2e/%2e%2e/etc/passwd", "/../etc/passwd"),
    *("/play/connect_four/..%2f..%2fetc/passwd", "/%00", "/runs/%2e%2e/run.json"),
    *("/play/connect_four/..\\..\\etc\\passwd", "//etc/passwd", "/play//", "/runs/x/"),
    *("/play/connect_four/vendor/../../../../cli.py", "/%ff%fe", "/" + "a" * 5000),
)
JUNK: tuple[str | bytes, ...] = (
    *("", "{", "[]", "null", "1" * 5000, "[" * 9000, '"text"', b"\xff\xfe", "\0"),
    *('{"id": 1}', '{"id": -1, "method": "stop", "params": {}}'),
    '{"id": 1, "method": "__init__", "params": {}}',
    '{"id": 1, "method": "start", "params": {"game": "../..", "player": 3}}',
    '{"id": 1, "method": "start", "params": {"game": "chess", "player": "gtp:sh"}}',
    '{"id": 1e999, "method": "think", "params": {"actions": [NaN]}}',
)
WRONG: tuple[Any, ...] = ([99], [-1], [10**30], [0] * 8, [0] * 5000, [1.5], "0", None)


class Table(NamedTuple):
    """What a visitor plays, and with how many simulations."""

    game: str
    player: str
    simulations: int | None


@dataclasses.dataclass(frozen=True)
class Options:
    """How much there is to serve.

    visitors: who play at once.
    seconds: of each part; games that have begun are played to their end.
    simulations: of a move.
    idle_sockets: that hostile visitors leave open.
    seed: of the visitors' moves.
    json: print one JSON object.
    """

    visitors: int = 50
    seconds: float = 120.0
    simulations: int = 200
    idle_sockets: int = 2000
    seed: int = 0
    json: bool = False


@dataclasses.dataclass
class Tally:
    """What visitors met with."""

    games: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    lost_games: int = 0
    reconnections: int = 0
    pages: int = 0
    attacks: int = 0
    move_seconds: list[float] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Returns what is printed."""
        milliseconds = 1000 * np.array(self.move_seconds or [np.nan])
        return {
            "games": dict(self.games),
            "moves": len(self.move_seconds),
            "lost_games": self.lost_games,
            "reconnections": self.reconnections,
            "pages": self.pages,
            "attacks": self.attacks,
            "median_move_ms": round(float(np.median(milliseconds)), 1),
            "p95_move_ms": round(float(np.quantile(milliseconds, 0.95)), 1),
            "longest_move_ms": round(float(milliseconds.max()), 1),
            "errors": self.errors[:10],
        }


def main(options: Options) -> None:
    """Starts the server, plays, and prints what happened."""
    allow_files(options.visitors + options.idle_sockets + SPARE_FILES)
    with served() as url:
        results = asyncio.run(play_all(options, url))
    if options.json:
        print(json.dumps(results))
    else:
        for part, result in results.items():
            print(part)
            for name, value in result.items():
                print(f"  {name.replace('_', ' '):16} {value}")
    if any(result["errors"] or result["lost_games"] for result in results.values()):
        sys.exit("the server failed some visitors")


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Runs `azjax serve` on a free port; gives its address."""
    command = [sys.executable, "-m", "azjax", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = re.search(r"http://\S+", server.stdout.readline())
            if address is None:
                sys.exit("the server does not start")
            yield address[0]
        finally:
            server.kill()


async def play_all(options: Options, url: str) -> dict[str, dict[str, Any]]:
    """Returns what happened in both parts."""
    tables = [table_of(number, options) for number in range(options.visitors)]
    rules = {
        name: Rules(games.make(name), 100_000) for name in {t.game for t in tables}
    }
    results = {}
    for part, seconds in (
        ("at first", 0.0),  # one game each, while the server compiles
        ("alone", options.seconds),
        ("among hostile ones", options.seconds),
    ):
        tally = Tally()
        end = time.monotonic() + seconds
        visitors = [
            Visitor(url, table, rules[table.game], tally, options.seed + number)
            for number, table in enumerate(tables)
        ]
        attackers = attacks(url, options, tally) if "hostile" in part else []
        tasks = [asyncio.create_task(attack) for attack in attackers]
        loading = load_pages(url, tally, end)
        await asyncio.gather(loading, *(visitor.play(end) for visitor in visitors))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        results[part] = tally.summary()
    return results


def socket_of(url: str) -> str:
    """Returns the address of the WebSocket."""
    return f"ws{url.removeprefix('http')}socket"


def table_of(number: int, options: Options) -> Table:
    """Returns what a visitor plays: mostly Connect Four."""
    others = {
        3: Table("tic_tac_toe", "alphazero:pretrained", options.simulations),
        7: Table("othello", "minimax:4", None),
        9: Table("go", "random", None),
        13: Table("tic_tac_toe", "network:pretrained", None),
    }
    usual = Table("connect_four", "alphazero:pretrained", options.simulations)
    return others.get(number % 25, usual)


class Visitor:
    """Plays game after game as the page does, and checks what it is told."""

    def __init__(self, url: str, table: Table, rules: Rules, tally: Tally, seed: int):
        self._url, self._table, self._rules, self._tally = url, table, rules, tally
        self._rng = np.random.default_rng(seed)
        self._socket: ClientConnection | None = None
        self._id = 0

    async def play(self, end: float) -> None:
        """Plays until some time, at least one game."""
        while True:
            try:
                await self._play_game()
                self._tally.games[self._table.game] += 1
            except (AssertionError, TimeoutError, RuntimeError) as error:
                self._tally.lost_games += 1
                self._tally.errors.append(f"{self._table}: {error!r}")
            if time.monotonic() > end:
                break
        if self._socket is not None:
            await self._socket.close()

    async def _play_game(self) -> None:
        actions: list[int] = []
        own_side = int(self._rng.integers(2))
        while not await self._check_position(actions):
            state = self._rules.state(actions)
            if int(state.current_player) == own_side:
                actions.append(int(self._rng.choice(self._rules.legal_actions(state))))
            else:
                actions.append(await self._answer(actions))

    async def _check_position(self, actions: list[int]) -> bool:
        """Asks for the position; returns whether the game is over."""
        told = await self._ask("position", {"actions": actions})
        state = self._rules.state(actions)
        assert [move["action"] for move in told["moves"]] == (
            self._rules.legal_actions(state)
        )
        assert told["isOver"] == bool(state.terminated)
        assert told["rewards"] == self._rules.rewards(state)
        assert told["player"] == int(state.current_player)
        assert told["cells"] == np.ravel(self._rules.game.board(state)).tolist()
        return told["isOver"]

    async def _answer(self, actions: list[int]) -> int:
        """Asks for the player's move."""
        began = time.monotonic()
        request = {"actions": actions, "simulations": self._table.simulations}
        thought = await self._ask("think", request)
        self._tally.move_seconds.append(time.monotonic() - began)
        legal = self._rules.legal_actions(self._rules.state(actions))
        assert thought["action"] in legal
        assert thought["simulations"] == (self._table.simulations or 0)
        if self._table.simulations:
            visits = sum(move["visits"] for move in thought["moves"])
            assert visits == self._table.simulations, visits
        return thought["action"]

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        """Asks, and if the connection breaks connects again and asks again."""
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    if self._socket is None:
                        url = socket_of(self._url)
                        self._socket = await connect(url, max_size=None)
                        game, player, _ = self._table
                        await self._exchange("start", {"game": game, "player": player})
                    return await self._exchange(method, params)
            except (websockets.ConnectionClosed, OSError, websockets.InvalidHandshake):
                self._socket = None
                self._tally.reconnections += 1
                await asyncio.sleep(0.5)

    async def _exchange(self, method: str, params: dict[str, Any]) -> Any:
        assert self._socket is not None
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        await self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(await self._socket.recv())
            if answer["id"] != self._id or answer["kind"] == "progress":
                continue
            if answer["kind"] != "answer":
                raise RuntimeError(f"{method} {params}: {answer}")
            return answer["value"]


async def load_pages(url: str, tally: Tally, end: float) -> None:
    """Loads pages as a browser does, until some time, one after the other."""
    while True:
        for path in PAGES:
            async with asyncio.timeout(PATIENCE), opened(url) as (reader, writer):
                head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close"
                writer.write(f"{head}\r\n\r\n".encode())
                answer = await reader.read()
            if not answer.startswith(b"HTTP/1.1 200 "):
                tally.errors.append(f"{path}: {answer[:50]!r}")
            tally.pages += 1
        if time.monotonic() > end:
            return
        await asyncio.sleep(0.5)


def attacks(
    url: str, options: Options, tally: Tally
) -> list[Coroutine[Any, Any, None]]:
    """Returns all attacks, each of which goes on until it is cancelled."""
    half = options.idle_sockets // 2
    alone = (send_junk, send_huge, post_huge, make_wrong_moves, ask_and_leave)
    alone += (never_read, try_addresses)
    crowd = [say_nothing] * half + [never_begin] * (options.idle_sockets - half)
    return [
        *(again(attack, url, tally) for attack in alone),
        *(
            again(attack, url, tally, pause=1.0, delay=ARRIVAL * number / len(crowd))
            for number, attack in enumerate(crowd)
        ),
    ]


async def again(
    attack: Callable[[str, Tally], Awaitable[None]],
    url: str,
    tally: Tally,
    pause: float = 0.05,
    delay: float = 0.0,
) -> None:
    """Attacks again and again; to be thrown out is no error, to be answered wrongly
    is."""
    await asyncio.sleep(delay)
    while True:
        try:
            await attack(url, tally)
        except AssertionError as error:
            tally.errors.append(f"{attack.__name__}: {error}")
        except (OSError, EOFError, websockets.WebSocketException):
            pass
        tally.attacks += 1
        await asyncio.sleep(pause)


@contextlib.asynccontextmanager
async def opened(
    url: str,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Opens a connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def send_junk(url: str, tally: Tally) -> None:
    """Sends what is no message: every one is answered by an error, or ends it."""
    del tally
    async with connect(socket_of(url), max_size=None) as socket:
        for junk in JUNK:
            await socket.send(junk)
            answer = json.loads(await socket.recv())
            assert answer["kind"] == "error", answer
            assert "\n" not in answer["value"], answer


async def send_huge(url: str, tally: Tally) -> None:
    """Sends a message that is too long: it ends the connection."""
    del tally
    async with connect(socket_of(url), max_size=None) as socket:
        await socket.send("x" * HUGE)
        try:
            answer = await socket.recv()
        except websockets.ConnectionClosed:
            return
        raise AssertionError(f"a huge message was answered: {answer!r}")


async def post_huge(url: str, tally: Tally) -> None:
    """Sends a body to an address that takes none."""
    del tally
    async with opened(url) as (reader, writer):
        head = f"POST /lobby.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: {HUGE}"
        writer.write(f"{head}\r\n\r\n".encode())
        for _ in range(HUGE // 100_000):
            writer.write(b"x" * 100_000)
            await writer.drain()
        status = await reader.readline()
        assert b" 405 " in status or not status, status


async def make_wrong_moves(url: str, tally: Tally) -> None:
    """Asks about positions that do not exist."""
    async with connect(socket_of(url), max_size=None) as socket:
        start = {"game": "connect_four", "player": "alphazero:pretrained"}
        for number, (method, params) in enumerate(
            [("start", start)]
            + [("position", {"actions": actions}) for actions in WRONG]
            + [("think", {"actions": a, "simulations": 25}) for a in WRONG]
            + [
                ("think", {"actions": [], "simulations": s})
                for s in (0, 7, 10**9, -1, "1", 1.5)
            ]
        ):
            message = {"id": number, "method": method, "params": params}
            await socket.send(json.dumps(message))
            answer = json.loads(await socket.recv())
            expected = "answer" if method == "start" else "error"
            assert answer["kind"] == expected, (message, answer)
        tally.attacks += 1


async def ask_and_leave(url: str, tally: Tally) -> None:
    """Has the server think and does not wait."""
    del tally
    async with connect(socket_of(url), max_size=None) as socket:
        start = {"game": "connect_four", "player": "alphazero:pretrained"}
        await socket.send(json.dumps({"id": 0, "method": "start", "params": start}))
        for number in range(1, 20):
            params = {"actions": [], "simulations": 1600}
            message = {"id": number, "method": "think", "params": params}
            await socket.send(json.dumps(message))


async def never_read(url: str, tally: Tally) -> None:
    """Asks for many positions and reads none of the answers."""
    del tally
    async with connect(socket_of(url), max_size=None, max_queue=1) as socket:
        start = {"game": "chess", "player": "random"}
        await socket.send(json.dumps({"id": 0, "method": "start", "params": start}))
        for number in range(1, 1000):
            message = {"id": number, "method": "position", "params": {"actions": []}}
            await socket.send(json.dumps(message))


async def try_addresses(url: str, tally: Tally) -> None:
    """Asks for files that are none of the page's."""
    for path in TRICKS:
        async with opened(url) as (reader, writer):
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close"
            writer.write(f"{head}\r\n\r\n".encode())
            answer = await reader.read()
            if not answer:
                raise EOFError
            status, shown = answer[:12], path[:60]
            assert re.match(rb"HTTP/1.1 4\d\d", status), (shown, status)
            assert b"root:" not in answer, shown
        tally.attacks += 1


async def say_nothing(url: str, tally: Tally) -> None:
    """Opens a connection, sends half a request at most, and waits."""
    del tally
    async with opened(url) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost:")
        await reader.read()


async def never_begin(url: str, tally: Tally) -> None:
    """Opens a WebSocket and waits."""
    del tally
    async with connect(socket_of(url), open_timeout=PATIENCE) as socket:
        await socket.recv()


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the rules alone
    main(tyro.cli(Options, description=__doc__))
