"""A program that speaks GTP, the Go Text Protocol, as a player."""

import contextlib
import shlex
import shutil
from collections.abc import Sequence

from azjax.games import Game, State
from azjax.games.host import first_state, next_state
from azjax.players.gtp_notation import COLORS, RESIGN, read_vertex, to_vertex
from azjax.players.gtp_process import GtpProcess, RefusedError
from azjax.players.session import ForfeitError, MoveDecision, ResignError

MOVE_SECONDS = 60.0
START_SECONDS = 120.0  # engines may load large networks
REQUIRED_COMMANDS = {"clear_board", "genmove", "play"}


class GtpPlayer:
    """Asks an engine for moves. Each concurrent game has its own process, which later
    games reuse."""

    def __init__(
        self,
        command: str,
        move_seconds: float = MOVE_SECONDS,
        start_seconds: float = START_SECONDS,
    ):
        """Checks that the program exists; it is started with the first session.

        Args:
            command: the program and its arguments, quoted as in a shell.
            move_seconds: time limit for a move.
            start_seconds: time limit for starting.

        Raises:
            ValueError: there is no such program, or the system cannot run it.
        """
        if not GtpProcess.is_possible:
            raise ValueError(
                f"gtp:{command} needs process groups, which Windows does not have; run "
                "azjax in WSL"
            )
        try:
            self.arguments = shlex.split(command)
        except ValueError as error:
            raise ValueError(
                f"the command {command!r} cannot be parsed: {error}"
            ) from error
        if not self.arguments or shutil.which(self.arguments[0]) is None:
            raise ValueError(f"there is no program {command!r}")
        self.move_seconds, self._start_seconds = move_seconds, start_seconds
        self._idle: list[_Engine] = []

    def start_session(self, game: Game, seed: int) -> "_GtpSession":
        """Starts a session for a new game.

        Args:
            game: the game; size and komi are sent to the engine.
            seed: sent to engines with the command `set_random_seed`, as in GNU Go.

        Raises:
            ForfeitError: the engine does not start.
            ValueError: the engine does not support this game.
        """
        engine = self._take_idle() or _Engine(
            self.arguments, self.move_seconds, self._start_seconds
        )
        try:
            engine.begin(game, seed)
        except BaseException:
            engine.process.kill()
            raise
        return _GtpSession(engine, game, self._idle)

    def close(self) -> None:
        """Ends the engines that are not in a game."""
        while engine := self._take_idle():
            engine.process.quit()

    def _take_idle(self) -> "_Engine | None":
        while self._idle:
            with contextlib.suppress(IndexError):  # taken by another thread
                engine = self._idle.pop()
                if engine.process.is_running:
                    return engine
        return None


class _Engine:
    """A running engine and its commands."""

    def __init__(
        self, arguments: Sequence[str], move_seconds: float, start_seconds: float
    ):
        self.process = GtpProcess(arguments)
        self.move_seconds = move_seconds
        try:
            version = self.process.ask("protocol_version", start_seconds)
            self.process.name = self.ask("name")[:40] or self.process.name
            self.commands = set(self.ask("list_commands").split())
        except RefusedError as error:
            self.process.kill()
            raise ForfeitError(
                f"{self.process.name} does not speak GTP: {error}"
            ) from error
        missing = ", ".join(sorted(REQUIRED_COMMANDS - self.commands))
        if version != "2" or missing:
            self.process.kill()
            reason = f"it lacks {missing}" if missing else f"its version is {version!r}"
            raise ForfeitError(f"{self.process.name} does not speak GTP 2: {reason}")

    def ask(self, command: str) -> str:
        return self.process.ask(command, self.move_seconds)

    def begin(self, game: Game, seed: int) -> None:
        """Sets up the initial position of a game."""
        settings = []
        if "set_random_seed" in self.commands:
            settings.append(f"set_random_seed {seed % 2**31}")
        if "size" in game.options:
            settings.append(f"boardsize {game.options['size']}")
        if "komi" in game.options:
            settings.append(f"komi {game.options['komi']:g}")
        for command in (*settings, "clear_board"):
            try:
                self.ask(command)
            except RefusedError as error:
                raise ValueError(
                    f"{self.process.name} cannot play {game}: it answers {command!r} "
                    f"with {str(error)!r}"
                ) from error


class _GtpSession:
    """An engine in one game, with the moves that were sent to it."""

    def __init__(self, engine: _Engine, game: Game, idle: list[_Engine]):
        self._engine, self._game, self._idle = engine, game, idle
        self._moves: list[int] = []
        self._states = [first_state(game)]
        self._is_asked = False

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move.

        Raises:
            ForfeitError: the engine died, timed out or broke the rules, and was killed.
            ResignError: the engine resigned.
        """
        self._follow(moves)
        command = f"genmove {COLORS[int(state.current_player)]}"
        answer = self._ask(command)
        if answer.lower() == RESIGN:
            raise ResignError("resigned")
        try:
            action = read_vertex(self._game, self._states[-1], answer)
        except ValueError:
            self._engine.process.kill()
            raise ForfeitError(
                f"{self._engine.process.name} answers {command!r} with {answer!r}, "
                "which is not a legal move"
            ) from None
        self._add(action)
        return MoveDecision(action)

    def close(self) -> None:
        """Makes the engine available to other games, or kills it if it is still
        computing."""
        if self._is_asked:
            self._engine.process.kill()
        elif self._engine.process.is_running:
            self._idle.append(self._engine)

    def _follow(self, moves: Sequence[int]) -> None:
        """Sends the engine the moves that were made and undone."""
        known = 0
        while known < min(len(moves), len(self._moves)) and (
            moves[known] == self._moves[known]
        ):
            known += 1
        while len(self._moves) > known:
            self._take_back()
        for action in moves[len(self._moves) :]:
            state = self._states[-1]
            color = COLORS[int(state.current_player)]
            self._ask(f"play {color} {to_vertex(self._game, state, int(action))}")
            self._add(int(action))

    def _take_back(self) -> None:
        if "undo" in self._engine.commands:
            with contextlib.suppress(RefusedError):
                self._engine.ask("undo")
                self._moves.pop()
                self._states.pop()
                return
        self._restart()

    def _restart(self) -> None:
        self._ask("clear_board")
        self._moves.clear()
        del self._states[1:]

    def _add(self, action: int) -> None:
        self._moves.append(action)
        self._states.append(next_state(self._game, self._states[-1], action))

    def _ask(self, command: str) -> str:
        """Sends a command that every engine must support."""
        self._is_asked = True
        try:
            return self._engine.ask(command)
        except RefusedError as error:
            self._engine.process.kill()
            raise ForfeitError(
                f"{self._engine.process.name} refuses {command!r}: {error}"
            ) from error
        finally:
            self._is_asked = False
