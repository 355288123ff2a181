"""The lines that a front end sends, as they arrive."""

import os
from collections.abc import Iterator

CHUNK = 1 << 16  # bytes
MAX_LINE = 1 << 16  # bytes


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
