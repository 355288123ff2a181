"""A game against a player in a notebook: the page in a cell; needs anywidget."""

import functools
import json
import threading
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import traitlets

from azjax import games, players
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game
from azjax.play.joined_modules import joined
from azjax.play.opponents import default_opponent
from azjax.play.page_files import page_files
from azjax.play.server.catalog import Catalog, GameOffer
from azjax.play.server.describing import (
    RESIGNATION,
    describe_decision,
    describe_position,
    describe_start,
)
from azjax.play.server.house import Host, House
from azjax.play.server.jobs import Job, report
from azjax.play.server.limits import Limits
from azjax.play.server.messages import (
    AskDecision,
    AskMove,
    AskMoves,
    AskPosition,
    Message,
    MessageError,
    Start,
    parse,
)
from azjax.play.server.replaying import describe_moves
from azjax.play.server.rules import Rules
from azjax.players import AnyPlayer


def play(
    game: Game | str,
    opponent: AnyPlayer | str | None = None,
    *,
    user_player: int = 0,
    seed: int = 0,
) -> "Board":
    """Returns a board on which the user can play, for the notebook to display.

    It is the board of `azjax serve`, with its analysis and settings; the opponent
    thinks in the kernel. Compiling the game takes some seconds.

    Args:
        game: what is played, or its name as `azjax.games.make` takes it.
        opponent: who answers, or a text as `azjax.players.load` takes it; without it
            the player that ships for the game, or else a search. It searches as it
            does everywhere, with as many simulations as the user chooses, at first its
            own number.
        user_player: 0 if the user begins the first game, 1 if the opponent does.
        seed: of the opponent's chance.

    Raises:
        ValueError: there is no such game or opponent.
    """
    enable_compilation_cache()
    if isinstance(game, str):
        game = games.make(game)
    if opponent is None:
        opponent = default_opponent(game)
    if isinstance(opponent, str):
        opponent = players.load(opponent, game)
    return Board(game, opponent, user_player, seed)


class Board(anywidget.AnyWidget):
    """A board in a notebook cell, which answers the messages of its displays.

    thoughts: that its displays wait for.

    Args:
        game: what is played.
        opponent: who answers.
        user_player: who the user is in the first game.
        seed: of the opponent's chance.
    """

    _page = traitlets.Unicode().tag(sync=True)
    _style = traitlets.Unicode().tag(sync=True)
    _begins = traitlets.Unicode().tag(sync=True)

    _house: House | None = None
    _host: Host | None = None

    def __init__(self, game: Game, opponent: AnyPlayer, user_player: int, seed: int):
        self.decisions = _Decisions()
        self._esm, page, style = _page()
        begins = ("you", "computer")[user_player]
        super().__init__(_page=page, _style=style, _begins=begins)
        limits = Limits()
        rules = Rules(game, limits.positions)
        house = House(Catalog({}, Path(), has_all=False), limits, seed=seed)
        host = Host(GameOffer(repr(game), rules.game, {}), opponent, (), house, None)
        host.warm_up()
        description = {
            **describe_start(game, repr(game)).description,
            "player": type(opponent).__name__.removesuffix("Player") or "the opponent",
            "simulations": host.default_strength,
            "strengths": host.strengths,
            "search": host.search,
        }
        self._house, self._host = house, host
        self._make_view = functools.partial(_View, self, rules, host, description)
        self.on_msg(self._take)
        if self.comm is not None:
            self.comm.on_close(lambda _: self.close())

    def close(self) -> None:
        """Takes the board away: the opponent thinks no more."""
        self.decisions.close()
        if self._house is not None and self._host is not None:
            self._host.close()
            self._house.close()
        super().close()

    def _take(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        del buffers
        number = content.get("view")
        if isinstance(number, int):
            self._make_view(number).take(content)


class _Thought(NamedTuple):
    job: Job
    id: int


class _Decisions(dict[int, _Thought]):
    """The thoughts that displays wait for, by the numbers of the displays."""

    def __init__(self):
        super().__init__()
        self._lock = threading.Lock()

    def end(self, number: int, job: Job) -> None:
        """Forgets a thought, unless there is a newer one."""
        with self._lock:
            if number in self and self[number].job is job:
                del self[number]

    def give_up(self, number: int) -> _Thought | None:
        """Gives up what is thought for a display; returns it if there is such."""
        with self._lock:
            decision = self.pop(number, None)
        if decision is None or decision.job.is_done:
            return None
        decision.job.give_up()
        return decision

    def close(self) -> None:
        """Gives up all."""
        for number in list(self):
            self.give_up(number)


class _View:
    """Answers a message of one display of a board.

    Args:
        board: through which it is answered.
        rules: of the game.
        host: of the opponent.
        description: of both, for the page.
        number: of the display.
    """

    def __init__(
        self,
        board: Board,
        rules: Rules,
        host: Host,
        description: dict[str, Any],
        number: int,
    ):
        self._board, self._rules, self._host = board, rules, host
        self._description, self._number = description, number
        self._decisions = board.decisions

    def take(self, content: dict[str, Any]) -> None:
        """Answers a message; a thought is answered later, by another thread."""
        try:
            message = parse(json.dumps(content), self._rules.game.max_moves)
        except MessageError as error:
            return self._send(error.id, "error", str(error))
        try:
            if isinstance(message, AskDecision):
                return self._think(message)
            self._send(message.id, "answer", self._value(message))
        except ValueError as error:
            self._send(message.id, "error", str(error))
        except Exception as error:
            self._send(message.id, "error", report(error))

    def _value(
        self, message: Message
    ) -> dict[str, Any] | list[dict[str, Any]] | int | None:
        match message:
            case Start():
                return self._description
            case AskPosition():
                return describe_position(self._rules, message.actions)
            case AskMoves():
                return describe_moves(self._rules, message.actions)
            case AskMove():
                return self._rules.read(message.actions, message.text)
        self._give_up()
        return None

    def _think(self, message: AskDecision) -> None:
        self._give_up()
        rules, state = self._rules, self._rules.state(message.actions)
        if state.terminated:
            raise ValueError("the game is over")
        table, simulations = self._host.table(message.simulations)

        def tell() -> None:
            if job.error is not None:
                self._send(message.id, "error", job.error)
            elif job.is_resigned:
                self._send(message.id, "answer", RESIGNATION)
            elif job.found is not None:
                kind = "answer" if job.is_done else "progress"
                with_tree = job.is_done and message.tree
                decision = describe_decision(
                    rules,
                    state,
                    *job.found,
                    with_tree=with_tree,
                    is_cut=job.is_cut,
                )
                self._send(message.id, kind, decision)
            elif job.stage is not None:
                self._send(message.id, "stage", job.stage)
            if job.is_done:
                self._decisions.end(self._number, job)

        limits = Limits()
        job = Job(state, message.actions, simulations, tell, limits)
        self._decisions[self._number] = _Thought(job, message.id)
        table.ask(job)

    def _give_up(self) -> None:
        """Lets go of the thought that is under way, which the page then knows."""
        decision = self._decisions.give_up(self._number)
        if decision is not None:
            self._send(decision.id, "answer", None)

    def _send(self, id: int | None, kind: str, value: Any) -> None:
        self._board.send({"id": id, "kind": kind, "value": value, "view": self._number})


@functools.cache
def _page() -> tuple[str, str, str]:
    """Returns the page's program, elements and style."""
    folder = page_files()
    page, style = (folder / name for name in ("index.html", "style.css"))
    return joined(folder, "widget.js"), page.read_text(), style.read_text()
