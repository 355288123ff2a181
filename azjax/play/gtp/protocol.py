"""The lines of GTP: commands, answers, and reading while something else goes on.

After the Go Text Protocol, version 2, draft 2, by Gunnar Farnebäck (2002).
"""

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

CHUNK = 1 << 16  # bytes
MAX_LINE = 1 << 16  # bytes


class Command(NamedTuple):
    """What a line asks for.

    id: the digits before the command, empty where there are none.
    name: the command, empty if the line has an id alone.
    arguments: the words behind it.
    """

    id: str
    name: str
    arguments: list[str]


class CommandError(Exception):
    """A command fails; the message is what the protocol or we say to it."""


def parse(line: bytes) -> Command | None:
    """Reads a line; None if it is empty but for spaces and a comment.

    Control characters and what is no ASCII are left out.
    """
    text = line.decode("ascii", errors="ignore").replace("\t", " ")
    text = "".join(filter(str.isprintable, text)).partition("#")[0]
    words = text.split()
    if not words:
        return None
    command_id = words.pop(0) if words[0].isdecimal() else ""
    name = words.pop(0) if words else ""
    return Command(command_id, name, words)


def success(command_id: str, text: str) -> str:
    """Returns an answer with all that ends it."""
    first, *rest = text.split("\n")
    # An empty line would end the answer.
    lines = [f"={command_id} {first}", *(line for line in rest if line.strip())]
    return "\n".join(lines) + "\n\n"


def failure(command_id: str, message: str) -> str:
    """Returns the answer to a command that fails, with all that ends it."""
    return f"?{command_id} {' '.join(message.split())}\n\n"


def read_lines(file_descriptor: int) -> Iterator[bytes]:
    """Yields the lines of a file as they come, without their ends.

    Of a line that is longer than `MAX_LINE` only so much is yielded.
    """
    # A buffered file would be locked by the reading thread when the program ends.
    line = b""
    while chunk := os.read(file_descriptor, CHUNK):
        *lines, rest = chunk.split(b"\n")
        for end in lines:
            yield (line + end)[:MAX_LINE]
            line = b""
        line = (line + rest)[:MAX_LINE]
    if line:
        yield line


class Inbox:
    """Lines that come in while something else goes on."""

    def __init__(self, lines: Iterable[bytes]):
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        self._next: list[bytes | None] = []
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def get(self) -> bytes | None:
        """Returns the next line, None after the last one, when it is there."""
        return self._next.pop() if self._next else self._lines.get()

    def wait(self, seconds: float) -> bool:
        """Waits until a line or the end is there, and returns whether it is."""
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
