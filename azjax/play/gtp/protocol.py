"""Lines of GTP: parsing, formatting, and reading in the background.

Follows the Go Text Protocol, version 2, draft 2, by Gunnar Farnebäck (2002).
"""

import math
import queue
import threading
from collections.abc import Iterable
from typing import NamedTuple

from azjax.checks import printable

COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
MAX_DIGITS = 7
MAX_MESSAGE = 300  # characters
SYNTAX_ERROR = "syntax error"


class Command(NamedTuple):
    """A parsed line.

    id: the digits before the command, may be empty.
    name: the command; empty if the line has only an id.
    arguments: the remaining words.
    """

    id: str
    name: str
    arguments: list[str]


class CommandError(Exception):
    """A failed command; the message is sent to the client."""


def parse(line: bytes) -> Command | None:
    """Parses a line; returns None if it has only spaces and a comment.

    Control characters and non-ASCII bytes are ignored.
    """
    text = line.decode("ascii", errors="ignore").replace("\t", " ")
    text = "".join(filter(str.isprintable, text)).partition("#")[0]
    words = text.split()
    if not words:
        return None
    command_id = words.pop(0) if words[0].isdecimal() else ""
    name = words.pop(0) if words else ""
    return Command(command_id, name, words)


class Arguments(list[str]):
    """The arguments of a command; each method raises a `CommandError` if the one at its
    place is missing or is something else."""

    def word(self, place: int) -> str:
        """Returns an argument."""
        if place >= len(self):
            raise CommandError(SYNTAX_ERROR)
        return self[place]

    def color(self, place: int) -> int:
        """Returns the player of a color."""
        player = COLORS.get(self.word(place).lower())
        if player is None:
            raise CommandError(SYNTAX_ERROR)
        return player

    def whole(self, place: int) -> int:
        """Returns a non-negative integer."""
        digits = self.word(place)
        if not digits.isdecimal() or len(digits) > MAX_DIGITS:
            raise CommandError(SYNTAX_ERROR)
        return int(digits)

    def real(self, place: int) -> float:
        """Returns a finite number."""
        try:
            value = float(self.word(place))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise CommandError(SYNTAX_ERROR)
        return value


def success(command_id: str, text: str) -> str:
    """Returns a complete successful response."""
    first, *rest = text.split("\n")
    # An empty line would end the response.
    lines = [f"={command_id} {first}", *(line for line in rest if line.strip())]
    return "\n".join(lines) + "\n\n"


def failure(command_id: str, message: str) -> str:
    """Returns a complete error response, in a line of bounded length."""
    text = printable(" ".join(message.split()), MAX_MESSAGE)
    return f"?{command_id} {text}\n\n"


class Inbox:
    """Lines that a background thread reads."""

    def __init__(self, lines: Iterable[bytes]):
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        self._next: list[bytes | None] = []
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def get(self) -> bytes | None:
        """Waits for the next line; returns it, or None after the last one."""
        return self._next.pop() if self._next else self._lines.get()

    def wait(self, seconds: float) -> bool:
        """Waits for a line or the end; returns whether one arrived in time."""
        if not self._next:
            try:
                self._next.append(self._lines.get(timeout=seconds))
            except queue.Empty:
                return False
        return True

    def _read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._lines.put(line)
        self._lines.put(None)
