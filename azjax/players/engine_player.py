"""An engine, a program that speaks a protocol, as a player."""

import abc
import contextlib
import shlex
import shutil
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from azjax.checks import quoted
from azjax.games import Game, State
from azjax.players.engine_process import EngineProcess
from azjax.players.session import MoveDecision, PlayerSession

MOVE_SECONDS = 60.0
START_SECONDS = 120.0  # engines may load large networks


class Engine(Protocol):
    """A running engine."""

    @property
    def process(self) -> EngineProcess: ...  # noqa: D102

    def begin(self, game: Game, seed: int) -> None:
        """Sets up the initial position of a game.

        Raises:
            ForfeitError: the engine failed.
            ValueError: the engine does not support this game.
        """
        ...


E = TypeVar("E", bound=Engine)


class EnginePlayer(abc.ABC, Generic[E]):
    """Asks an engine for moves. Each concurrent game has its own process, which later
    games reuse.

    arguments: the program and its arguments.
    num_threads: threads that a process computes with, as far as it is known.
    move_seconds: time limit for a move.
    start_seconds: time limit for starting.
    """

    num_threads: int = 1

    def __init__(self, spec: str, command: str, move_seconds: float, seconds: float):
        """Checks that the program exists; it is started with the first session.

        Args:
            spec: the player string, for messages.
            command: the program and its arguments, quoted as in a shell.
            move_seconds: time limit for a move.
            seconds: time limit for starting.
        """
        if not EngineProcess.is_possible:
            raise ValueError(
                f"{spec} needs process groups, which Windows does not have; run azjax "
                "in WSL"
            )
        try:
            self.arguments = shlex.split(command)
        except ValueError as error:
            raise ValueError(
                f"the command {quoted(command)} cannot be parsed: {error}"
            ) from error
        if not self.arguments or shutil.which(self.arguments[0]) is None:
            raise ValueError(f"there is no program {quoted(command)}")
        self.move_seconds, self.start_seconds = move_seconds, seconds
        self._idle: list[E] = []

    def start_session(self, game: Game, seed: int) -> PlayerSession:
        """Starts a session for a new game.

        Args:
            game: the game.
            seed: seed of the engine's random choices, if it takes one.
        """
        engine = self._take_idle() or self._start()
        try:
            engine.begin(game, seed)
        except BaseException:
            engine.process.kill()
            raise
        return self._make_session(engine, game, self._idle)

    def close(self) -> None:
        """Ends the engines that are not in a game."""
        while engine := self._take_idle():
            engine.process.quit()

    @abc.abstractmethod
    def _start(self) -> E:
        """Starts another process."""

    @abc.abstractmethod
    def _make_session(self, engine: E, game: Game, idle: list[E]) -> PlayerSession:
        """Returns a session; `idle` receives the engine after the game."""

    def _take_idle(self) -> E | None:
        while self._idle:
            with contextlib.suppress(IndexError):  # taken by another thread
                engine = self._idle.pop()
                if engine.process.is_running:
                    return engine
        return None


class EngineSession(abc.ABC, Generic[E]):
    """An engine in one game."""

    def __init__(self, engine: E, idle: list[E]):
        self._engine, self._idle = engine, idle
        self._is_asked = False

    @abc.abstractmethod
    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move; see `PlayerSession.choose`.

        Raises:
            ForfeitError: the engine died, timed out or broke the rules, and was killed.
        """

    def close(self) -> None:
        """Makes the engine available to other games, or kills it if it is still
        computing."""
        if self._is_asked:
            self._engine.process.kill()
        elif self._engine.process.is_running:
            self._idle.append(self._engine)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """A context in which the engine computes; it is killed if the answer is not
        awaited."""
        self._is_asked = True
        try:
            yield
        except KeyboardInterrupt:
            self._engine.process.kill()
            raise
        finally:
            self._is_asked = False
