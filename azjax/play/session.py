"""A person's games against an opponent, and the commands of the terminal."""

import datetime
import os
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from azjax.games import Game, saved_game
from azjax.games.saved_game import RESULTS, UNFINISHED, SavedGame
from azjax.play.background import Executor, InlineExecutor
from azjax.play.controller import (
    Advised,
    Controller,
    Event,
    Forfeited,
    Jumped,
    Moved,
    PlayerSessions,
)
from azjax.play.text_output import expected_value, side_names
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
    """A command that a person can type.

    names: accepted spellings; `help` shows the first.
    help: description.
    argument: its form in `help`; empty without an argument.
    """

    names: tuple[str, ...]
    help: str
    argument: str = ""


COMMANDS = (
    Command(("hint",), "what the opponent would play in your place"),
    Command(("back", "undo"), "take back your last move"),
    Command(("forward", "redo"), "redo a move that was taken back"),
    Command(("sides",), "change sides"),
    Command(("auto",), "let the opponent play both sides; again: stop"),
    Command(("analysis",), "show the opponent's analysis; again: hide it"),
    Command(("new",), "start a new game"),
    Command(("save",), "write the game to a file", "[FILE]"),
    Command(("load",), "continue a saved game", "FILE"),
    Command(("help", "?"), "show this list"),
    Command(("quit", "exit", "q"), "leave"),
)


def parse(text: str) -> tuple[str, str] | None:
    """Returns the first name of a command and its argument, None for other lines."""
    word, _, argument = text.strip().partition(" ")
    argument = argument.strip()
    for command in COMMANDS:
        if word.lower() in command.names and (command.argument or not argument):
            return command.names[0], argument
    return None


def help_lines() -> list[str]:
    """Returns the commands with their descriptions, aligned."""
    shown = [
        (" or ".join((f"{c.names[0]} {c.argument}".strip(), *c.names[1:])), c.help)
        for c in COMMANDS
    ]
    width = max(len(names) for names, _ in shown)
    return [f"{names:<{width}}  {help_text}" for names, help_text in shown]


class Session:
    """A person, an opponent and the games between them.

    Args:
        game: the game.
        opponent: the player; a `HumanPlayer` is a second person at the same board.
        name: name of the opponent.
        user: the person's player, 0 moves first.
        seed: seed of the opponent's random choices.
        run: executor of the opponent's decisions, by default the caller's thread.

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
        self.is_auto = self.is_analyzing = self.is_left = False
        self._game, self._opponent, self._seed = game, opponent, seed
        self._run = run or InlineExecutor()
        self._path: Path | None = None  # of the saved or loaded game
        self._advice: MoveDecision | None = None  # for the current position
        self._values: dict[int, float] = {}  # for player 0, by ply
        self.opponent_session = self._start_opponent()
        self.controller = Controller(game, self._player_sessions(), self._run)
        self.controller.observe(self._observe)

    @property
    def game(self) -> Game:
        """The game, with compiled functions."""
        return self.controller.game

    @property
    def player_names(self) -> tuple[str, str]:
        """The names of players 0 and 1."""
        if self.opponent_session is None:
            return (PERSON, PERSON)
        mine = self.name if self.is_auto else PERSON
        return (self.name, mine) if self.user else (mine, self.name)

    def name_of(self, player: int) -> str:
        """Returns the name of a player in messages."""
        if self.opponent_session is None:
            return f"the player with the {side_names(self.game)[player]}"
        if player == self.user and not self.is_auto:
            return "you"
        return self.name

    def forfeit_text(self, forfeited: Forfeited) -> str:
        """Returns the message for a forfeit or resignation."""
        name = self.name_of(forfeited.player)
        if forfeited.is_resignation:
            return f"{name} resigns"
        return f"{name} forfeits: {forfeited.reason}"

    def outcome(self) -> str:
        """Returns the result of the game with its reason."""
        result = self.controller.result
        if result is None:
            return "the game is not over"
        if result[0] == result[1]:
            words = "a draw"
        else:
            winner = 0 if result[0] > result[1] else 1
            words = "you win" if winner == self.user else "you lose"
            if self.opponent_session is None or self.is_auto:
                words = f"the {side_names(self.game)[winner]} win"
        reason = self.result_text()
        return f"{words}: {reason}" if reason else words

    def result_text(self) -> str:
        """Returns the reason of the result, empty if there is nothing to add."""
        forfeit = self.controller.forfeit
        if forfeit is not None:
            return forfeit.reason
        return self.game.result_text(self.controller.state)

    def latest_decision(self) -> tuple[int, MoveDecision] | None:
        """Returns the ply and the decision of the latest advice or opponent's move."""
        moves = self.controller.moves
        if self._advice is not None:
            return len(moves), self._advice
        for ply in reversed(range(len(moves))):
            decision = moves[ply].decision
            if decision is not None:
                return ply, decision
        return None

    def values(self) -> list[float]:
        """Returns the expected results for player 0 up to the current position."""
        last = len(self.controller.moves)
        return [value for ply, value in sorted(self._values.items()) if ply <= last]

    def begin(self, saved: str | None = None) -> str:
        """Starts the first game or continues that of a file; returns a message.

        The clock starts when the opponent is compiled.

        Raises:
            ValueError: the game cannot be loaded.
        """
        message = "" if saved is None else self.do(f"load {saved}")
        opponent = self._opponent
        if isinstance(opponent, ExternalPlayer):
            self.controller.start()
        else:

            def start(compilation: Future[MoveDecision | None]) -> None:
                compilation.result()  # raises the error of a failed compilation
                self.controller.start()

            self._run(lambda: compile_choice(opponent, self._game), start)
        return message

    def do(self, line: str) -> str:
        """Executes a move or a command; returns a message.

        `quit` only sets `is_left`; the interface must end.

        Raises:
            ValueError: the line is invalid now; the error explains why.
        """
        command = parse(line)
        if command is not None:
            name, argument = command
            try:
                return self._execute(name, argument)
            except OSError as error:
                where = error.filename or argument
                raise ValueError(f"{where}: {error.strerror or error}") from error
        if not line.strip():
            raise ValueError("type a move, or `help` for a list of commands")
        if self.controller.result is not None:
            raise ValueError(f"{line.strip()!r} cannot be played: the game is over")
        if not self.controller.is_persons_turn:
            raise ValueError("it is not your turn")
        self.controller.play(self.game.text_to_action(self.controller.state, line))
        return ""

    def close(self) -> None:
        """Ends the game and closes the opponent."""
        self.controller.close()
        if self.opponent_session is not None:
            self.opponent_session.close()

    def _execute(self, name: str, argument: str) -> str:  # noqa: PLR0912  # a case each
        """Executes a command by its first name; returns a message."""
        controller, message = self.controller, ""
        if name in ("hint", "sides", "auto", "analysis"):
            self._require_opponent()
        if name in ("back", "sides", "auto", "new"):
            self._restart_opponent()
        match name:
            case "hint":
                controller.advise(self._require_opponent())
            case "back":
                self._stop_auto()
                controller.take_back()
            case "forward":
                self._stop_auto()
                controller.forward()
            case "sides":
                self.user, self.is_auto = 1 - self.user, False
                controller.set_sessions(self._player_sessions())
                message = f"you have the {side_names(self.game)[self.user]}"
            case "auto":
                self.is_auto = not self.is_auto
                controller.set_sessions(self._player_sessions())
                message = "you play again"
                if self.is_auto:
                    message = f"{self.name} plays both sides"
            case "analysis":
                self.is_analyzing = not self.is_analyzing
                controller.adviser = (
                    self.opponent_session if self.is_analyzing else None
                )
                if self.is_analyzing and controller.is_persons_turn:
                    controller.advise(self._require_opponent())
                message = f"the analysis is {'on' if self.is_analyzing else 'off'}"
            case "new":
                self.is_auto, self._path, self._values = False, None, {}
                controller.load([], self._player_sessions())
                message = "a new game"
            case "save":
                message = self._save(argument)
            case "load":
                message = self._load(argument)
            case "help":
                message = "\n".join(["a move, or one of:", *help_lines()])
            case "quit":
                self.is_left = True
        return message

    def _load(self, argument: str) -> str:
        if not argument:
            raise ValueError("load needs a file: load FILE")
        path = Path(os.path.expanduser(argument))
        saved, actions = saved_game.load(path, self.game)
        self._restart_opponent()
        first, second = saved.players
        if (first == PERSON) != (second == PERSON):
            self.user = int(second == PERSON)
        self.is_auto, self._path, self._values = False, path, {}
        self.controller.load(actions, self._player_sessions())
        return f"loaded {path}: {first} against {second}, {len(actions)} moves"

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
        now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
        path = self._path or Path(f"{self.game.name}-{now}.txt")
        if argument:
            path = Path(os.path.expanduser(argument))
        saved_game.save(path, saved, overwrite=path == self._path)
        self._path = path
        return f"saved in {path}"

    def _observe(self, event: Event) -> None:
        """Updates the advice and the values; advice is valid for one position only."""
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
        """Stores the expected result at a ply for player 0."""
        value = None if decision is None else expected_value(decision)
        if value is not None:
            player = int(self.controller.states[ply].current_player)
            self._values[ply] = -value if player else value

    def _require_opponent(self) -> PlayerSession:
        if self.opponent_session is None:
            raise ValueError("this needs an opponent; two people play")
        return self.opponent_session

    def _player_sessions(self) -> PlayerSessions:
        opponent = self.opponent_session
        if self.is_auto:
            return (opponent, opponent)
        return (opponent, None) if self.user else (None, opponent)

    def _stop_auto(self) -> None:
        if self.is_auto:
            self._execute("auto", "")

    def _start_opponent(self) -> PlayerSession | None:
        if isinstance(self._opponent, HumanPlayer):
            return None
        try:
            return start_session(self._opponent, self._game, self._seed)
        except ForfeitError as error:
            raise ValueError(f"{self.name}: {error}") from error

    def _restart_opponent(self) -> None:
        """Replaces the session of an opponent that forfeited."""
        failed = self.opponent_session
        if self.controller.forfeit is not None and failed is not None:
            self.opponent_session = self._start_opponent()
            failed.close()
            if self.is_analyzing:
                self.controller.adviser = self.opponent_session
            self.controller.set_sessions(self._player_sessions())
