"""Clients that play whole games and load pages as browsers do."""

import asyncio
import json
import time
from typing import Any, NamedTuple

import numpy as np
import websockets
from server_load.serving import NEWS, PATIENCE, Tally, opened, socket_of
from websockets.asyncio.client import ClientConnection, connect

from azjax.games.host import legal_actions, rewards
from azjax.play.server.positions import Rules

PAGES = (
    *("/lobby.json", "/play/connect_four/", "/play/connect_four/config.json"),
    *("/play/connect_four/app.js", "/play/chess/style.css"),
)


class Table(NamedTuple):
    """A visitor's opponent and its simulations."""

    game: str
    player: str
    simulations: int | None


def table_of(number: int, simulations: int) -> Table:
    """Returns a visitor's opponent: mostly the Connect Four player."""
    others = {
        3: Table("tic_tac_toe", "alphazero:pretrained", simulations),
        7: Table("othello", "minimax:6", None),
        9: Table("go", "random", None),
        13: Table("tic_tac_toe", "network:pretrained", None),
    }
    usual = Table("connect_four", "alphazero:pretrained", simulations)
    return others.get(number % 25, usual)


class Connection:
    """Plays games as the page does, and checks the answers."""

    def __init__(self, url: str, table: Table, rules: Rules, tally: Tally, seed: int):
        self._url, self._table, self._rules, self._tally = url, table, rules, tally
        self._rng = np.random.default_rng(seed)
        self._socket: ClientConnection | None = None
        self._id = 0

    async def play(self, end: float) -> None:
        """Plays until a time, at least one game."""
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
                legal = legal_actions(self._rules.game, state)
                actions.append(int(self._rng.choice(legal)))
            else:
                actions.append(await self._answer(actions))

    async def _check_position(self, actions: list[int]) -> bool:
        """Requests the position; returns whether the game is over."""
        told = await self._ask("position", {"actions": actions})
        state = self._rules.state(actions)
        assert [move["action"] for move in told["moves"]] == (
            legal_actions(self._rules.game, state)
        )
        assert told["isOver"] == bool(state.terminated)
        assert told["rewards"] == [*rewards(self._rules.game, state)]
        assert told["player"] == int(state.current_player)
        assert told["cells"] == np.ravel(self._rules.game.board(state)).tolist()
        return told["isOver"]

    async def _answer(self, actions: list[int]) -> int:
        """Requests the player's move, and the tree of its search."""
        began = time.monotonic()
        simulations = self._table.simulations
        request = {"actions": actions, "simulations": simulations, "tree": True}
        decision = await self._ask("decide", request)
        self._tally.move_seconds.append(time.monotonic() - began)
        legal = legal_actions(self._rules.game, self._rules.state(actions))
        assert decision["action"] in legal
        assert decision["simulations"] == (simulations or 0)
        if simulations:
            visits = sum(move["visits"] for move in decision["moves"])
            assert visits == simulations, visits
            assert decision["tree"]
        return decision["action"]

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        """Sends a request; reconnects and repeats it if the connection breaks."""
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
            if answer["id"] != self._id or answer["kind"] in NEWS:
                continue
            if answer["kind"] != "answer":
                raise RuntimeError(f"{method} {params}: {answer}")
            return answer["value"]


async def load_pages(url: str, tally: Tally, end: float) -> None:
    """Loads pages one after the other, as a browser does, until a time."""
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
