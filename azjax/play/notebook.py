"""The page in a notebook cell, as a widget; needs anywidget."""

import asyncio
import functools
import json
import os
import threading
from pathlib import Path
from typing import Any

from azjax import games, players
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game, GameRecord
from azjax.play.opponents import default_opponent
from azjax.play.page_files import joined, page_files
from azjax.play.review import find_game
from azjax.play.server.catalog import Catalog, GameOffer, PlayerOffer
from azjax.play.server.client import Client, StartedGame, ThreadPools
from azjax.play.server.limits import ServerLimits
from azjax.play.server.positions import describe_record
from azjax.play.server.registry import PlayerRegistry
from azjax.players import AnyPlayer
from azjax.settings import check_int

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"a board in a notebook needs {error.name}: pip install 'azjax[notebook]'",
        name=error.name,
    ) from error


def play(
    game: Game | str,
    opponent: AnyPlayer | str | None = None,
    *,
    user_player: int = 0,
    seed: int | None = None,
) -> "Board":
    """Returns a widget to play a game against an opponent.

    It shows the page of `azjax serve`, with analysis and settings; the opponent runs in
    the kernel. Compiling the game takes some seconds.

    Args:
        game: a game, or a text for `azjax.games.make`.
        opponent: a player, or a text for `azjax.players.load`; None means the shipped
            player of the game, or else a search. The user chooses the number of
            simulations; the default is the player's own.
        user_player: the user's player in the first game: 0 moves first, 1 second.
        seed: seed of the opponent's random choices, and of the outcomes of chance.
            With None the former is 0, and the outcomes differ from board to board.

    Raises:
        ValueError: the game or the opponent is unknown.
    """
    made = games.make(game) if isinstance(game, str) else game
    return _board(made, opponent, user_player, seed)


def review(
    file: str | os.PathLike[str],
    game: Game | str | None = None,
    reviewer: AnyPlayer | str | None = None,
    *,
    number: int = 1,
    seed: int | None = None,
) -> "Board":
    """Returns a widget that reviews a game of a file, with the curve of its values.

    It is the board of `play`, and the reviewer is the opponent if the game is played
    on from any of its positions.

    Args:
        file: as for `azjax.games.read_games`, such as PGN, SGF or a saved game.
        game: a game, or a text for `azjax.games.make`; None means that of the file.
        reviewer: a player, or a text for `azjax.players.load`; None as in `play`.
        number: which game of the file, from 1.
        seed: seed of the reviewer's random choices and, as in `play`, of the outcomes
            of chance.

    Raises:
        ValueError: the file, the game or the reviewer cannot be read.
    """
    check_int("number", number, 1)
    made = games.make(game) if isinstance(game, str) else game
    found, record = find_game(Path(file), number, made)
    return _board(found, reviewer, 0, seed, record)


def _board(
    game: Game,
    opponent: AnyPlayer | str | None,
    user_player: int,
    seed: int | None,
    record: GameRecord | None = None,
) -> "Board":
    enable_compilation_cache()
    if opponent is None:
        opponent = default_opponent(game)
    if isinstance(opponent, str):
        opponent = players.load(opponent, game)
    return Board(game, opponent, user_player, seed, record)


class Board(anywidget.AnyWidget):
    """The widget; it answers the messages of its views (the displays of its cell).

    Args:
        game: the game.
        opponent: the player.
        user_player: the user's player in the first game, 0 or 1.
        seed: as in `play`.
        record: a game to review; None to play one.
    """

    _page = traitlets.Unicode().tag(sync=True)
    _style = traitlets.Unicode().tag(sync=True)
    _begins = traitlets.Unicode().tag(sync=True)
    _reviewed = traitlets.Dict(allow_none=True).tag(sync=True)

    _loop: asyncio.AbstractEventLoop | None = None  # once the board is complete

    def __init__(
        self,
        game: Game,
        opponent: AnyPlayer,
        user_player: int,
        seed: int | None,
        record: GameRecord | None = None,
    ):
        self._esm, page, style = _page()
        begins = ("you", "computer")[user_player]
        reviewed = None if record is None else describe_record(record)
        super().__init__(_page=page, _style=style, _begins=begins, _reviewed=reviewed)
        title = type(opponent).__name__.removesuffix("Player") or "the opponent"
        player = PlayerOffer(title, title, opponent)
        offer = GameOffer(repr(game), game, {title: player})
        catalog = Catalog({offer.key: offer})
        limits = ServerLimits()
        self._registry = PlayerRegistry(catalog, limits, seed or 0)
        self._registry.describe(offer, player)  # compiles the rules and the search
        self._pools = ThreadPools(limits.reviews)
        self._seed = seed
        self._game = StartedGame(offer, player, self._registry.rules(offer))
        self._views: dict[int, _View] = {}
        is_ready = threading.Event()
        threading.Thread(
            target=lambda: asyncio.run(self._live(is_ready)),
            name="azjax-board",
            daemon=True,
        ).start()
        is_ready.wait()
        self.on_msg(self._receive)
        if self.comm is not None:
            self.comm.on_close(lambda _: self.close())

    def close(self) -> None:
        """Closes the widget and cancels its decisions."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(self._is_closed.set)
        super().close()

    async def _live(self, is_ready: threading.Event) -> None:
        """Lets the views answer in this event loop until the board is closed."""
        self._loop, self._is_closed = asyncio.get_running_loop(), asyncio.Event()
        is_ready.set()
        await self._is_closed.wait()
        for view in self._views.values():
            view.stop()
        self._pools.close()
        self._registry.close()

    def _receive(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        """Lets a view answer a message; the view does not name game and player."""
        del buffers
        number, params = content.get("view"), content.get("params")
        if self._loop is None or not isinstance(number, int):
            return
        if isinstance(params, dict):
            names = {"game": self._game.offer.key, "player": self._game.player.name}
            content = {**content, "params": {**params, **names}}
        view = self._views.setdefault(number, _View(self, number))
        answered = view.answer(json.dumps(content))
        asyncio.run_coroutine_threadsafe(answered, self._loop)


class _View(Client):
    """A view of a board."""

    def __init__(self, board: Board, number: int):
        super().__init__(board._registry, board._pools, board._game, board._seed)
        self._board, self._number = board, number

    async def send(self, id: int | None, kind: str, value: Any) -> None:
        """Sends a message to the view."""
        self._board.send({"id": id, "kind": kind, "value": value, "view": self._number})


@functools.cache
def _page() -> tuple[str, str, str]:
    """Returns the page's JavaScript, HTML and CSS."""
    folder = page_files()
    page, style = (folder / name for name in ("index.html", "style.css"))
    return joined(folder, "widget.js"), page.read_text(), style.read_text()
