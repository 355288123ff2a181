"""A person at a board with somebody to play against, and what they may ask for.

All interfaces read the same commands, here, and have the same controller.
"""

import datetime
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from azjax.games import Game
from azjax.play import saved_game
from azjax.play.controller import Controller, PlayerSessions
from azjax.play.events import Advised, Event, Forfeited, Jumped, Moved
from azjax.play.executor import Executor, InlineExecutor
from azjax.play.saved_game import RESULTS, UNFINISHED, SavedGame
from azjax.play.text_output import opinion, side_names
from azjax.players import (
    AnyPlayer,
    ExternalPlayer,
    ForfeitError,
    HumanPlayer,
    MoveDecision,
    PlayerSession,
    compile_choice,
    start_session,
)

PERSON = "human"


class Command(NamedTuple):
    """Something that a person may ask for.

    names: how it may be written, the first one as it is shown.
    help: what it does.
    argument: what may stand behind it.
    """

    names: tuple[str, ...]
    help: str
    argument: str = ""


COMMANDS = (
    Command(("hint",), "what the opponent would play in your place"),
    Command(("back", "undo"), "take your last move back"),
    Command(("forward", "redo"), "go forward again"),
    Command(("sides",), "change sides"),
    Command(("auto",), "let the opponent play for both; again: stop that"),
    Command(("analysis",), "show what the opponent thinks; again: hide it"),
    Command(("new",), "begin a new game"),
    Command(("save",), "write the game to a file", "[FILE]"),
    Command(("load",), "go on with a saved game", "FILE"),
    Command(("help", "?"), "show this"),
    Command(("quit", "exit", "q"), "leave"),
)


def parse(text: str) -> tuple[str, str] | None:
    """Returns the name of the command that a line holds and what stands behind it, or
    None if it holds none."""
    word, _, argument = text.strip().partition(" ")
    argument = argument.strip()
    for command in COMMANDS:
        if word.lower() in command.names and (command.argument or not argument):
            return command.names[0], argument
    return None


def help_lines() -> list[str]:
    """Returns the commands with what they do."""
    shown = [
        (" or ".join((f"{c.names[0]} {c.argument}".strip(), *c.names[1:])), c.help)
        for c in COMMANDS
    ]
    width = max(len(names) for names, _ in shown)
    return [f"{names:<{width}}  {help_text}" for names, help_text in shown]


class Session:
    """A person, an opponent and the games between them.

    Args:
        game: what is played.
        opponent: who answers; a `HumanPlayer` is a second person at the same board.
        name: what the opponent is called.
        user: 0 if the person begins, 1 if the opponent does.
        seed: of the opponent's chance.
        run: has a seat think, beside the interface's thread or, by default, in it.

    Raises:
        ValueError: the opponent cannot play this game, or does not start.
    """

    def __init__(
        self,
        game: Game,
        opponent: AnyPlayer,
        *,
        name: str,
        user: int,
        seed: int = 0,
        run: Executor | None = None,
    ):
        self.name, self.user = name, user
        self.is_auto = self.is_analysing = self.is_left = False
        self._game, self._opponent, self._seed = game, opponent, seed
        self._run = run or InlineExecutor()
        self._path: Path | None = None  # of the game, if it was saved or loaded
        self._advice: MoveDecision | None = None  # for the position
        self._values: dict[int, float] = {}  # for the first player, by moves before
        self._commands = {
            "hint": self._hint,
            "back": self._back,
            "forward": self._forward,
            "sides": self._sides,
            "auto": self._auto,
            "analysis": self._analysis,
            "new": self._new,
            "save": self._save,
            "load": self._load,
            "help": self._help,
            "quit": self._quit,
        }
        self.seat = self._sit()
        self.controller = Controller(game, self._seats(), self._run)
        self.controller.observe(self._follow)

    @property
    def game(self) -> Game:
        """What is played, with compiled functions."""
        return self.controller.game

    @property
    def player_names(self) -> tuple[str, str]:
        """Who plays, by player."""
        if self.seat is None:
            return (PERSON, PERSON)
        mine = self.name if self.is_auto else PERSON
        return (self.name, mine) if self.user else (mine, self.name)

    def addressed(self, player: int) -> str:
        """Returns what a player is called in a message."""
        if self.seat is None:
            return f"the player with the {side_names(self.game)[player]}"
        if player == self.user and not self.is_auto:
            return "you"
        return self.name

    def farewell(self, forfeited: Forfeited) -> str:
        """Returns what to tell when a side gives up."""
        name = self.addressed(forfeited.player)
        if forfeited.is_resignation:
            return f"{name} resigns"
        return f"{name} cannot go on: {forfeited.reason}"

    def outcome(self) -> str:
        """Returns how the game ended."""
        result = self.controller.result
        if result is None:
            return "the game goes on"
        if result[0] == result[1]:
            words = "a draw"
        else:
            words = self._victory(0 if result[0] > result[1] else 1)
        reason = self.result_text()
        return f"{words}: {reason}" if reason else words

    def result_text(self) -> str:
        """Returns what there is to say about the end beside who has won."""
        forfeit = self.controller.forfeit
        if forfeit is not None:
            return forfeit.reason
        return self.game.result_text(self.controller.state)

    def latest_decision(self) -> tuple[int, MoveDecision] | None:
        """Returns what was thought last, and after how many moves: the advice for this
        position, or what led to the last move of a seat."""
        moves = self.controller.moves
        if self._advice is not None:
            return len(moves), self._advice
        for ply in reversed(range(len(moves))):
            decision = moves[ply].decision
            if decision is not None:
                return ply, decision
        return None

    def values(self) -> list[float]:
        """Returns what was expected for the first player, from move to move."""
        last = len(self.controller.moves)
        return [value for ply, value in sorted(self._values.items()) if ply <= last]

    def begin(self, saved: str | None = None) -> str:
        """Begins the first game, or goes on with a saved one; returns what to tell.

        The game starts, and its clock, when the opponent's choice is compiled.

        Raises:
            ValueError: it cannot be loaded.
        """
        said = "" if saved is None else self.do(f"load {saved}")
        opponent = self._opponent
        if isinstance(opponent, ExternalPlayer):
            self.controller.start()
        else:
            self._run(lambda: compile_choice(opponent, self._game), self._start)
        return said

    def do(self, line: str) -> str:
        """Does what a line says, a move or a command, and returns what to tell.

        To leave is left to the interface, which looks at `is_left`.

        Raises:
            ValueError: it says nothing that can be done; the message explains it.
        """
        command = parse(line)
        if command is None:
            self._play(line)
            return ""
        name, argument = command
        try:
            return self._commands[name](argument)
        except OSError as error:
            where = error.filename or argument
            raise ValueError(f"{where}: {error.strerror or error}") from error

    def close(self) -> None:
        """Drops the game, and gives back what the opponent holds."""
        self.controller.close()
        if self.seat is not None:
            self.seat.close()

    def _start(self, compilation: Future[MoveDecision | None]) -> None:
        compilation.result()  # raises what went wrong
        self.controller.start()

    def _play(self, text: str) -> None:
        if not text.strip():
            raise ValueError("type a move, or `help` for what else there is")
        if self.controller.result is not None:
            raise ValueError(f"{text.strip()!r} cannot be played: the game is over")
        if not self.controller.is_persons_turn:
            raise ValueError("it is not your turn")
        state = self.controller.state
        self.controller.play(self.game.text_to_action(state, text))

    def _hint(self, _: str) -> str:
        self.controller.advise(self._adviser())
        return ""

    def _back(self, _: str) -> str:
        self._revive()
        self._stop_auto()
        self.controller.take_back()
        return ""

    def _forward(self, _: str) -> str:
        self._stop_auto()
        self.controller.forward()
        return ""

    def _sides(self, _: str) -> str:
        self._adviser()
        self._revive()
        self.user, self.is_auto = 1 - self.user, False
        self.controller.set_sessions(self._seats())
        return f"you have the {side_names(self.game)[self.user]}"

    def _auto(self, _: str) -> str:
        self._adviser()
        self._revive()
        self.is_auto = not self.is_auto
        self.controller.set_sessions(self._seats())
        if self.is_auto:
            return f"{self.name} plays for both"
        return "you play again"

    def _analysis(self, _: str) -> str:
        self._adviser()
        self.is_analysing = not self.is_analysing
        self.controller.adviser = self.seat if self.is_analysing else None
        if self.is_analysing and self.controller.is_persons_turn:
            self.controller.advise(self._adviser())
        return f"the analysis is {'on' if self.is_analysing else 'off'}"

    def _new(self, _: str) -> str:
        self._revive()
        self.is_auto, self._path = False, None
        self._values = {}
        self.controller.load([], self._seats())
        return "a new game"

    def _save(self, argument: str) -> str:
        moves = self.controller.moves
        result, forfeit = self.controller.result, self.controller.forfeit
        saved = SavedGame(
            game=repr(self.game),
            players=self.player_names,
            result=UNFINISHED if result is None else RESULTS[result],
            moves=[move.text for move in moves],
            is_forfeit=forfeit is not None,
            result_text="" if result is None else self.result_text(),
        )
        path = Path(argument).expanduser() if argument else self._path or self._unused()
        saved_game.save(path, saved, overwrite=path == self._path)
        self._path = path
        return f"saved in {path}"

    def _load(self, argument: str) -> str:
        if not argument:
            raise ValueError("load what? load FILE")
        path = Path(argument).expanduser()
        saved, actions = saved_game.load(path, self.game)
        self._revive()
        self.is_auto, self._path = False, path
        first, second = saved.players
        if (first == PERSON) != (second == PERSON):
            self.user = int(second == PERSON)
        self._values = {}
        self.controller.load(actions, self._seats())
        return f"loaded {path}: {first} against {second}, {len(actions)} moves"

    def _help(self, _: str) -> str:
        return "\n".join(["a move, or one of:", *help_lines()])

    def _quit(self, _: str) -> str:
        self.is_left = True
        return ""

    def _follow(self, event: Event) -> None:
        """Observes the game: advice is for the position for which it was given."""
        ply = len(self.controller.moves)
        match event:
            case Moved(_, move):
                self._advice = None
                self._values = {n: v for n, v in self._values.items() if n < ply}
                self._remember(ply - 1, move.decision)
            case Jumped():
                self._advice = None
            case Advised(decision):
                self._advice = decision
                self._remember(ply, decision)

    def _remember(self, ply: int, decision: MoveDecision | None) -> None:
        """Keeps what was expected after so many moves, for the first player."""
        value = None if decision is None else opinion(decision)
        if value is not None:
            player = int(self.controller.states[ply].current_player)
            self._values[ply] = -value if player else value

    def _victory(self, winner: int) -> str:
        if self.seat is None or self.is_auto:
            return f"the {side_names(self.game)[winner]} win"
        return "you win" if winner == self.user else "you lose"

    def _adviser(self) -> PlayerSession:
        if self.seat is None:
            raise ValueError("two people play; there is no opponent to ask")
        return self.seat

    def _seats(self) -> PlayerSessions:
        seat = self.seat
        if self.is_auto:
            return (seat, seat)
        return (seat, None) if self.user else (None, seat)

    def _stop_auto(self) -> None:
        if self.is_auto:
            self._auto("")

    def _sit(self) -> PlayerSession | None:
        if isinstance(self._opponent, HumanPlayer):
            return None
        try:
            return start_session(self._opponent, self._game, self._seed)
        except ForfeitError as error:
            raise ValueError(f"{self.name}: {error}") from error

    def _revive(self) -> None:
        """Gives an opponent that could not go on a new seat."""
        if self.controller.forfeit is not None and self.seat is not None:
            dead, self.seat = self.seat, self._sit()
            dead.close()
            if self.is_analysing:
                self.controller.adviser = self.seat
            self.controller.set_sessions(self._seats())

    def _unused(self) -> Path:
        """Returns the name of a file that is not there."""
        now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
        return Path(f"{self.game.name}-{now}.txt")
