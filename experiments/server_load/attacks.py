"""Hostile clients: invalid and oversized messages, and idle sockets."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import websockets
from server_load.serving import NEWS, PATIENCE, Tally, opened, socket_of
from websockets.asyncio.client import connect

HUGE = 20_000_000  # bytes
ARRIVAL = 5.0  # time limit for opening all idle sockets (seconds)
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
    '{"id": 1e999, "method": "decide", "params": {"actions": [NaN]}}',
)
WRONG: tuple[Any, ...] = ([99], [-1], [10**30], [0] * 8, [0] * 5000, [1.5], "0", None)


def attacks(
    url: str, tally: Tally, num_idle_sockets: int
) -> list[Coroutine[Any, Any, None]]:
    """Returns all attacks; each runs until it is cancelled."""
    half = num_idle_sockets // 2
    alone = (send_junk, send_huge, post_huge, make_wrong_moves, ask_and_leave)
    alone += (never_read, try_addresses)
    crowd = [say_nothing] * half + [never_begin] * (num_idle_sockets - half)
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
    """Repeats an attack.

    A closed connection is no error; a wrong answer is.
    """
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


async def send_junk(url: str, tally: Tally) -> None:
    """Sends invalid messages; each must be answered by an error or close the
    connection.
    """
    del tally
    async with connect(socket_of(url), max_size=None) as socket:
        for junk in JUNK:
            await socket.send(junk)
            answer = json.loads(await socket.recv())
            assert answer["kind"] == "error", answer
            assert "\n" not in answer["value"], answer


async def send_huge(url: str, tally: Tally) -> None:
    """Sends an oversized message; it must close the connection."""
    del tally
    async with connect(socket_of(url), max_size=None) as socket:
        await socket.send("x" * HUGE)
        try:
            answer = await socket.recv()
        except websockets.ConnectionClosed:
            return
        raise AssertionError(f"an oversized message was answered: {answer!r}")


async def post_huge(url: str, tally: Tally) -> None:
    """Posts a body to an address that accepts none."""
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
    """Requests positions that do not exist."""
    async with connect(socket_of(url), max_size=None) as socket:
        start = {"game": "connect_four", "player": "alphazero:pretrained"}
        for number, (method, params) in enumerate(
            [("start", start)]
            + [("position", {"actions": actions}) for actions in WRONG]
            + [("decide", {"actions": a, "simulations": 25}) for a in WRONG]
            + [
                ("decide", {"actions": [], "simulations": s})
                for s in (0, 7, 10**9, -1, "1", 1.5)
            ]
            + [
                ("decide", {"actions": [], "simulations": 25, "tree": tree})
                for tree in (None, 1, "yes", [])
            ]
        ):
            message = {"id": number, "method": method, "params": params}
            await socket.send(json.dumps(message))
            answer = json.loads(await socket.recv())
            while answer["kind"] in NEWS:
                answer = json.loads(await socket.recv())
            expected = "answer" if method == "start" else "error"
            assert answer["kind"] == expected, (message, answer)
        tally.attacks += 1


async def ask_and_leave(url: str, tally: Tally) -> None:
    """Requests a move and disconnects."""
    del tally
    async with connect(socket_of(url), max_size=None) as socket:
        start = {"game": "connect_four", "player": "alphazero:pretrained"}
        await socket.send(json.dumps({"id": 0, "method": "start", "params": start}))
        for number in range(1, 20):
            params = {"actions": [], "simulations": 1600}
            message = {"id": number, "method": "decide", "params": params}
            await socket.send(json.dumps(message))


async def never_read(url: str, tally: Tally) -> None:
    """Requests many positions and does not read the answers."""
    del tally
    async with connect(socket_of(url), max_size=None, max_queue=1) as socket:
        start = {"game": "chess", "player": "random"}
        await socket.send(json.dumps({"id": 0, "method": "start", "params": start}))
        for number in range(1, 1000):
            message = {"id": number, "method": "position", "params": {"actions": []}}
            await socket.send(json.dumps(message))


async def try_addresses(url: str, tally: Tally) -> None:
    """Requests files outside the page."""
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
    """Opens a connection, sends at most half a request, and waits."""
    del tally
    async with opened(url) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost:")
        await reader.read()


async def never_begin(url: str, tally: Tally) -> None:
    """Opens a WebSocket and waits."""
    del tally
    async with connect(socket_of(url), open_timeout=PATIENCE) as socket:
        await socket.recv()
