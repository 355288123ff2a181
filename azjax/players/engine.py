"""Engines: programs that answer lines of text with lines of text, as players."""

import abc
import contextlib
import contextvars
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import IO, Generic, NoReturn, TypeVar, cast

from azjax.games import Game, State
from azjax.games.host import first_state, next_state
from azjax.players.core import ForfeitError, MoveDecision, PlayerSession
from azjax.text import printable, quoted

MOVE_SECONDS = 60.0
START_SECONDS = 120.0  # engines may load large networks
CHUNK = 1 << 16  # bytes
MAX_LINE = 1 << 20  # bytes
MAX_ANSWER = 1 << 20  # characters of an answer that is kept
MAX_NAME = 40  # characters
MAX_STDERR = 1 << 12  # bytes that are kept
QUIT_SECONDS = 1.0
SHOWN = 200  # characters of output quoted in a message
STOP_INTERVAL = 0.1  # seconds between looks at `STOPPED`

# An event that ends the waits for engines in this thread; None: nothing does.
STOPPED: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "STOPPED", default=None
)


class EngineProcess:
    """A running engine.

    It leads its own process group, which is killed when this object is closed or
    deleted, or the program ends. Not available on Windows, which has no process groups
    (`is_possible`). Its output is read as printable text.

    name: the engine's name in messages.
    """

    is_possible = hasattr(os, "killpg")

    def __init__(self, arguments: Sequence[str]):
        """Starts the program.

        Raises:
            ForfeitError: the program does not start.
        """
        self.name = os.path.basename(arguments[0])
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise ForfeitError(
                f"{self.name} does not start: {error.strerror}"
            ) from error
        self._finalizer = weakref.finalize(self, _end, self._process)
        self._received, self._complaints = bytearray(), bytearray()
        self._selector = selectors.DefaultSelector()
        self._input, output, errors = (
            cast(IO[bytes], stream)
            for stream in (
                self._process.stdin,
                self._process.stdout,
                self._process.stderr,
            )
        )
        os.set_blocking(self._input.fileno(), False)
        self._selector.register(output, selectors.EVENT_READ, self._received)
        self._selector.register(errors, selectors.EVENT_READ, self._complaints)

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._finalizer.alive and self._process.poll() is None

    def send(self, line: str, seconds: float, command: str | None = None) -> None:
        """Sends a line.

        Args:
            line: the line, without its end.
            seconds: time limit for the engine to read it.
            command: what messages call it; None: the line.

        Raises:
            ForfeitError: the engine is not running, or does not read; it is killed.
        """
        if not self._finalizer.alive:
            raise ForfeitError(f"{self.name} is not running")
        command, unsent = command or line, f"{line}\n".encode()
        deadline = time.monotonic() + seconds
        self._selector.register(self._input, selectors.EVENT_WRITE)
        while unsent:
            # An engine that writes may read only after its output has been read.
            ready = self._wait(command, deadline)
            if not ready:
                self.fail(f"did not read {shown(command)!r} within {seconds:g} seconds")
            if len(self._received) > MAX_LINE:
                self.fail(f"did not read {shown(command)!r} and writes without end")
            if self._input in ready:
                try:
                    unsent = unsent[os.write(self._input.fileno(), unsent[:CHUNK]) :]
                except BlockingIOError:
                    pass
                except OSError:
                    self.fail(self._how_it_died(command))
        self._selector.unregister(self._input)

    def lines(self, command: str, seconds: float) -> Iterator[str]:
        """Yields the next lines of the engine's output, endlessly, as they arrive.

        Args:
            command: what they answer, for messages.
            seconds: time limit for all lines together.

        Raises:
            ForfeitError: there is no next line; the engine is killed.
        """
        deadline = time.monotonic() + seconds
        while True:
            end = self._received.find(b"\n")
            if end >= 0:
                line = self._received[:end].decode(errors="replace")
                del self._received[: end + 1]
                yield printable(line)
                continue
            if len(self._received) > MAX_LINE:
                self.fail(f"answers {command!r} with more than {MAX_LINE} bytes")
            if not self._wait(command, deadline):
                self.fail(f"did not answer {command!r} within {seconds:g} seconds")

    def _wait(self, command: str, deadline: float) -> list[object]:
        """Waits until the engine writes, or reads while there is something to send, and
        receives what it writes. Returns the streams that are ready; none at the
        deadline."""
        stopped, ready = STOPPED.get(), []
        while not ready and (remaining := deadline - time.monotonic()) > 0:
            if stopped is not None:
                if stopped.is_set():
                    self.fail("was stopped")
                remaining = min(remaining, STOP_INTERVAL)
            ready = self._selector.select(remaining)
        outputs = [key for key, _ in ready if key.fileobj is not self._input]
        if not all([self._read(key) for key in outputs]):
            self.fail(self._how_it_died(command))
        del self._complaints[:-MAX_STDERR]
        return [key.fileobj for key, _ in ready]

    def fail(self, what: str) -> NoReturn:
        """Kills the engine.

        Raises:
            ForfeitError: always; the message is the engine's name and `what` it did.
        """
        self.kill()
        raise ForfeitError(f"{self.name} {what}")

    def quit(self) -> None:
        """Sends `quit`, and kills the engine if it does not end."""
        with contextlib.suppress(ForfeitError):
            self.send("quit", QUIT_SECONDS)
        if self._finalizer.alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(QUIT_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kills the engine and the processes it started."""
        self._selector.close()
        self._finalizer()

    def _read(self, key: selectors.SelectorKey) -> bool:
        """Reads from a stream; returns False at the end of stdout."""
        chunk = os.read(key.fd, CHUNK)
        key.data.extend(chunk.replace(b"\r", b""))
        if chunk:
            return True
        self._selector.unregister(key.fileobj)
        return key.data is not self._received

    def _how_it_died(self, command: str) -> str:
        try:
            status = f"exit status {self._process.wait(QUIT_SECONDS)}"
        except subprocess.TimeoutExpired:
            status = "its output closed"
        for key, _ in self._selector.select(0):
            if key.fileobj is not self._input:
                self._read(key)
        complaint = self._complaints.decode(errors="replace")
        complaint = " ".join(printable(complaint).split())
        words = f": {complaint[-SHOWN:]}" if complaint else ""
        return f"died at {shown(command)!r} ({status}){words}"


def shown(text: str) -> str:
    """Returns a text in one line, shortened for a message."""
    return " ".join(text.split())[:SHOWN]


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


E = TypeVar("E", bound=EngineProcess)


class EnginePlayer(abc.ABC, Generic[E]):
    """Asks an engine for moves. Each concurrent game has its own process, which later
    games reuse.

    arguments: the program and its arguments.
    num_threads: threads that a process computes with, as far as it is known.
    move_seconds: time limit for a move.
    start_seconds: time limit for starting.
    """

    num_threads: int = 1

    def __init__(
        self, protocol: str, command: str, move_seconds: float, start_seconds: float
    ):
        """Checks that the program exists; it is started with the first session.

        Args:
            protocol: the kind of player, for messages.
            command: the program and its arguments, quoted as in a shell.
            move_seconds: time limit for a move.
            start_seconds: time limit for starting.
        """
        if not EngineProcess.is_possible:
            raise ValueError(
                f"{protocol}:{command} needs process groups, which Windows does not "
                "have; run azjax in WSL"
            )
        try:
            self.arguments = shlex.split(command)
        except ValueError as error:
            raise ValueError(
                f"the command {quoted(command)} cannot be parsed: {error}"
            ) from error
        if not self.arguments or shutil.which(self.arguments[0]) is None:
            raise ValueError(f"there is no program {quoted(command)}")
        self.move_seconds, self.start_seconds = move_seconds, start_seconds
        self._idle: list[E] = []

    def start_session(self, game: Game, seed: int) -> PlayerSession:
        """Starts a session for a new game.

        Args:
            game: the game.
            seed: seed of the engine's random choices, if it takes one.

        Raises:
            ForfeitError: the program does not start.
            ValueError: the engine does not play this game; none plays with chance.
        """
        if game.num_outcomes:
            raise ValueError(
                f"engines cannot play {game!r}: their protocols have no outcomes of "
                "chance"
            )
        engine = self._take_idle() or self._start()
        try:
            return self._begin(engine, game, seed)
        except BaseException:
            engine.kill()
            raise

    def close(self) -> None:
        """Ends the engines that are not in a game."""
        while engine := self._take_idle():
            engine.quit()

    @abc.abstractmethod
    def _start(self) -> E:
        """Starts another process."""

    @abc.abstractmethod
    def _begin(self, engine: E, game: Game, seed: int) -> "EngineSession[E]":
        """Begins a game with a process, which is killed if this fails."""

    def _take_idle(self) -> E | None:
        while self._idle:
            with contextlib.suppress(IndexError):  # taken by another thread
                engine = self._idle.pop()
                if engine.is_running:
                    return engine
        return None


class EngineSession(abc.ABC, Generic[E]):
    """An engine in one game, with the moves and the positions that it was told."""

    def __init__(self, player: EnginePlayer[E], engine: E, game: Game):
        self._engine, self._game, self._idle = engine, game, player._idle
        self._seconds = player.move_seconds
        self._moves: list[int] = []
        self._states = [first_state(game)]
        self._is_asked = False

    @abc.abstractmethod
    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move; see `PlayerSession.choose`."""

    def _num_known(self, moves: Sequence[int]) -> int:
        """Returns how many of the moves, from the first on, the engine was told."""
        pairs = zip(self._moves, moves, strict=False)
        others = (number for number, (old, new) in enumerate(pairs) if old != new)
        return next(others, min(len(self._moves), len(moves)))

    def _add(self, action: int) -> None:
        self._moves.append(action)
        self._states.append(next_state(self._game, self._states[-1], action))

    def close(self) -> None:
        """Makes the engine available to other games, or kills it if it is still
        computing."""
        if self._is_asked:
            self._engine.kill()
        elif self._engine.is_running:
            self._idle.append(self._engine)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """A context in which the engine computes; it is killed if the answer is not
        awaited."""
        self._is_asked = True
        try:
            yield
        except KeyboardInterrupt:
            self._engine.kill()
            raise
        finally:
            self._is_asked = False
