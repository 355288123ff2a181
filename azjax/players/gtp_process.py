"""The process of a program that speaks GTP, the Go Text Protocol."""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
import weakref
from collections.abc import Sequence
from typing import IO, cast

from azjax.players.session import ForfeitError

CHUNK = 1 << 16  # bytes
MAX_ANSWER = 1 << 20  # bytes
MAX_STDERR = 1 << 12  # bytes that are kept
QUIT_SECONDS = 1.0
SHOWN = 200  # characters of output quoted in a message


class RefusedError(Exception):
    """The engine answered with an error, which is the message."""


class GtpProcess:
    """A running engine that answers one command at a time.

    It leads its own process group, which is killed when this object is closed or
    deleted, or the program ends. Not available on Windows, which has no process groups
    (`is_possible`).
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
        self._answers, self._complaints = bytearray(), bytearray()
        self._selector = selectors.DefaultSelector()
        for stream, received in (
            (self._process.stdout, self._answers),
            (self._process.stderr, self._complaints),
        ):
            self._selector.register(
                cast(IO[bytes], stream), selectors.EVENT_READ, received
            )
        self._num_commands = 0

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._finalizer.alive and self._process.poll() is None

    def ask(self, command: str, seconds: float) -> str:
        """Returns the answer to a command.

        Args:
            command: one line.
            seconds: time limit.

        Raises:
            RefusedError: the engine answers with an error.
            ForfeitError: there is no valid answer; the engine is killed.
        """
        if not self._finalizer.alive:
            raise ForfeitError(f"{self.name} is not running")
        try:
            return self._ask(command, seconds)
        except ForfeitError:
            self.kill()
            raise

    def quit(self) -> None:
        """Sends `quit`, and kills the engine if it does not end."""
        with contextlib.suppress(RefusedError, ForfeitError):
            self.ask("quit", QUIT_SECONDS)
        if self._finalizer.alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(QUIT_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kills the engine and the processes it started."""
        self._selector.close()
        self._finalizer()

    def _ask(self, command: str, seconds: float) -> str:
        self._num_commands += 1
        try:
            cast(IO[bytes], self._process.stdin).write(
                f"{self._num_commands} {command}\n".encode()
            )
        except OSError:
            raise ForfeitError(self._how_it_died(command)) from None
        answer = self._receive(command, seconds)
        found = re.match(r"([=?])(\d*)", answer)
        if not found or found[2] not in ("", str(self._num_commands)):
            raise ForfeitError(
                f"{self.name} answers {command!r} with an invalid response: "
                f"{_shown(answer)!r}"
            )
        text = answer[found.end() :].strip()
        if found[1] == "?":
            raise RefusedError(_shown(text))
        return text

    def _receive(self, command: str, seconds: float) -> str:
        """Returns the next answer; an empty line ends it."""
        deadline = time.monotonic() + seconds
        while True:
            start = len(self._answers) - len(self._answers.lstrip(b"\n"))
            del self._answers[:start]
            end = self._answers.find(b"\n\n")
            if end < 0 and self._answers[:1] not in (b"", b"=", b"?"):
                end = self._answers.find(b"\n")  # not a GTP response
            if end >= 0:
                answer = self._answers[:end].decode(errors="replace")
                del self._answers[: end + 1]
                return answer
            if len(self._answers) > MAX_ANSWER:
                raise ForfeitError(
                    f"{self.name} answers {command!r} with more than {MAX_ANSWER} bytes"
                )
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ForfeitError(
                    f"{self.name} did not answer {command!r} within {seconds:g} seconds"
                )
            if not all([self._read(key) for key, _ in ready]):
                raise ForfeitError(self._how_it_died(command))
            del self._complaints[:-MAX_STDERR]

    def _read(self, key: selectors.SelectorKey) -> bool:
        """Reads from a stream; returns False at the end of stdout."""
        chunk = os.read(key.fd, CHUNK)
        key.data.extend(chunk.replace(b"\r", b""))
        if chunk:
            return True
        self._selector.unregister(key.fileobj)
        return key.data is not self._answers

    def _how_it_died(self, command: str) -> str:
        try:
            status = f"exit status {self._process.wait(QUIT_SECONDS)}"
        except subprocess.TimeoutExpired:
            status = "its output closed"
        for key, _ in self._selector.select(0):
            self._read(key)
        complaint = " ".join(self._complaints.decode(errors="replace").split())
        words = f": {complaint[-SHOWN:]}" if complaint else ""
        return f"{self.name} died at {command!r} ({status}){words}"


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _shown(text: str) -> str:
    return " ".join(text.split())[:SHOWN]
