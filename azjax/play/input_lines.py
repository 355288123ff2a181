"""The standard input: the lines of a front end as they arrive, and keys to discard."""

import os
import sys
from collections.abc import Iterator

CHUNK = 1 << 16  # bytes
MAX_LINE = 1 << 16  # bytes


def drop_typeahead() -> None:
    """Discards unread keys if the standard input is a terminal."""
    if not sys.stdin.isatty():
        return
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  # Windows only

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios  # noqa: PLC0415  # not on Windows

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def read_lines(file_descriptor: int) -> Iterator[bytes]:
    """Yields the lines of a file as they arrive, without line ends.

    Lines are truncated to `MAX_LINE` bytes.
    """
    # The reading thread would lock a buffered file at exit.
    line = b""
    while chunk := os.read(file_descriptor, CHUNK):
        *lines, rest = chunk.split(b"\n")
        for end in lines:
            yield (line + end)[:MAX_LINE]
            line = b""
        line = (line + rest)[:MAX_LINE]
    if line:
        yield line
