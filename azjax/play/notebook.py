"""The page in a notebook cell, as a widget; needs anywidget."""

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
from azjax.play.server.limits import ServerLimits
from azjax.play.server.messages import (
    DecisionRequest,
    MessageError,
    ReviewRequest,
    StartRequest,
    StopRequest,
    parse,
)
from azjax.play.server.positions import (
    RESIGNATION,
    answer,
    describe_decision,
    describe_record,
    describe_review,
)
from azjax.play.server.registry import LoadedPlayer, PlayerRegistry, QueuedPlayer
from azjax.play.server.search_workers import Job
from azjax.play.server.search_workers import report as report_error
from azjax.players import AnyPlayer
from azjax.players.simple import perfect_player
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
    seed: int = 0,
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
        seed: seed of the opponent's random choices.

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
    seed: int = 0,
) -> "Board":
    """Returns a widget that reviews a game of a file, with the curve of its values.

    It is the board of `play`, and the reviewer is the opponent if the game is played
    on from any of its positions.

    Args:
        file: as for `azjax.games.read_games`, such as PGN, SGF or a saved game.
        game: a game, or a text for `azjax.games.make`; None means that of the file.
        reviewer: a player, or a text for `azjax.players.load`; None as in `play`.
        number: which game of the file, from 1.
        seed: seed of the reviewer's random choices.

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
    seed: int,
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

    pending: the decision or review that each view waits for, by the number of the view,
        with the number of the message.

    Args:
        game: the game.
        opponent: the player.
        user_player: the user's player in the first game, 0 or 1.
        seed: seed of the opponent's random choices.
        record: a game to review; None to play one.
    """

    _page = traitlets.Unicode().tag(sync=True)
    _style = traitlets.Unicode().tag(sync=True)
    _begins = traitlets.Unicode().tag(sync=True)
    _reviewed = traitlets.Dict(allow_none=True).tag(sync=True)

    _opponent: LoadedPlayer | None = None
    _registry: PlayerRegistry | None = None

    def __init__(
        self,
        game: Game,
        opponent: AnyPlayer,
        user_player: int,
        seed: int,
        record: GameRecord | None = None,
    ):
        self.pending: dict[int, tuple[Job | QueuedPlayer, int]] = {}
        self._lock = threading.Lock()
        self._esm, page, style = _page()
        begins = ("you", "computer")[user_player]
        reviewed = None if record is None else describe_record(record)
        super().__init__(_page=page, _style=style, _begins=begins, _reviewed=reviewed)
        title = type(opponent).__name__.removesuffix("Player") or "the opponent"
        player = PlayerOffer(title, title, opponent)
        offer = GameOffer(repr(game), game, {title: player})
        catalog = Catalog({offer.key: offer}, Path("runs"), has_all=False)
        registry = PlayerRegistry(catalog, ServerLimits(), seed)
        self._description = registry.describe(offer, player)
        self._rules = registry.rules(offer)
        self._opponent, self._registry = registry.load(offer, player), registry
        self.on_msg(self._receive)
        if self.comm is not None:
            self.comm.on_close(lambda _: self.close())

    def close(self) -> None:
        """Closes the widget and cancels its decisions."""
        with self._lock:
            jobs = [job for job, _ in self.pending.values()]
            self.pending.clear()
        for job in jobs:
            job.cancel()
        if self._registry is not None:
            self._registry.close()
        super().close()

    def _receive(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        """Answers a message of a view; decisions are answered later, by another
        thread."""
        del buffers
        view = content.get("view")
        if not isinstance(view, int):
            return
        try:
            message = parse(json.dumps(content), self._rules.game.max_moves)
        except MessageError as error:
            self._answer(view, error.id, "error", str(error))
            return
        try:
            match message:
                case DecisionRequest():
                    self._decide(view, message)
                case ReviewRequest():
                    self._review(view, message)
                case StartRequest():
                    self._answer(view, message.id, "answer", self._description)
                case StopRequest():
                    self._cancel(view)
                    self._answer(view, message.id, "answer", None)
                case _:
                    value = answer(self._rules, message)
                    self._answer(view, message.id, "answer", value)
        except ValueError as error:
            self._answer(view, message.id, "error", str(error))
        except Exception as error:
            self._answer(view, message.id, "error", report_error(error))

    def _decide(self, view: int, message: DecisionRequest) -> None:
        assert self._opponent is not None
        self._cancel(view)
        rules, state = self._rules, self._rules.state(message.actions)
        if state.terminated:
            raise ValueError("the game is over")
        worker, simulations = self._opponent.worker(message.simulations)

        def notify() -> None:
            if job.error is not None:
                self._answer(view, message.id, "error", job.error)
            elif job.is_resigned:
                self._answer(view, message.id, "answer", RESIGNATION)
            elif job.progress is not None:
                kind = "answer" if job.is_done else "progress"
                with_tree = job.is_done and message.tree
                decision = describe_decision(
                    rules,
                    state,
                    *job.progress,
                    with_tree=with_tree,
                    is_timed_out=job.is_timed_out,
                )
                self._answer(view, message.id, kind, decision)
            elif job.stage is not None:
                self._answer(view, message.id, "stage", job.stage)
            if job.is_done:
                self._end(view, job)

        job = Job(state, message.actions, simulations, notify, ServerLimits())
        self.pending[view] = job, message.id
        worker.submit(job)

    def _review(self, view: int, message: ReviewRequest) -> None:
        """Reviews a game in another thread."""
        assert self._opponent is not None
        self._cancel(view)
        reviewer = QueuedPlayer(self._opponent, ServerLimits())
        solver = perfect_player(self._rules.game)

        def report(move: dict[str, Any]) -> None:
            self._answer(view, message.id, "progress", move)

        def run() -> None:
            kind, value = "answer", None
            try:
                value = describe_review(
                    self._rules, message.actions, reviewer, solver, report
                )
            except ValueError as error:
                kind, value = "error", str(error)
            except Exception as error:
                kind, value = "error", report_error(error)
            # A cancelled review is answered already.
            if self._end(view, reviewer):
                self._answer(view, message.id, kind, value)

        self.pending[view] = reviewer, message.id
        threading.Thread(target=run, name="azjax-review", daemon=True).start()

    def _cancel(self, view: int) -> None:
        """Cancels the running decision or review and answers its request with None."""
        with self._lock:
            job, id = self.pending.pop(view, (None, None))
        if job is not None and not job.is_done:
            job.cancel()
            self._answer(view, id, "answer", None)

    def _end(self, view: int, job: Job | QueuedPlayer) -> bool:
        """Removes what a view waited for, unless a newer request has replaced it;
        returns whether it was there."""
        with self._lock:
            is_newest = self.pending.get(view, (None, None))[0] is job
            if is_newest:
                del self.pending[view]
            return is_newest

    def _answer(self, view: int, id: int | None, kind: str, value: Any) -> None:
        self.send({"id": id, "kind": kind, "value": value, "view": view})


@functools.cache
def _page() -> tuple[str, str, str]:
    """Returns the page's JavaScript, HTML and CSS."""
    folder = page_files()
    page, style = (folder / name for name in ("index.html", "style.css"))
    return joined(folder, "widget.js"), page.read_text(), style.read_text()
