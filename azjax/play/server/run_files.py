"""Files of a run's directory, which somebody else may have written or copied here."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

# Nothing waits for the other end of a pipe, and no link is followed.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_inside(directory: Path, name: str, most: int | None = None) -> BinaryIO:
    """Opens a regular file of a directory for reading.

    Args:
        directory: of a run; it may be a link itself.
        name: of the file, relative to the directory.
        most: bytes that the file may have; None if it may have any number.

    Raises:
        OSError: there is no such file, a link leads to it, it is no regular file, or
            it is larger.
    """
    path = os.path.join(os.path.realpath(directory), *name.split("/"))
    if os.path.realpath(path) != path:
        raise OSError(f"{name} is a link or lies behind one")
    descriptor = os.open(path, _FLAGS)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(f"{name} is no regular file")
        if most is not None and about.st_size > most:
            raise OSError(f"{name} has more than {most} bytes")
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_inside(directory: Path, name: str, most: int) -> bytes:
    """Returns what a regular file of a directory holds; see `open_inside`."""
    with open_inside(directory, name, most) as file:
        return file.read(most)


def stat_inside(directory: Path, name: str, most: int | None = None) -> os.stat_result:
    """Returns the status of a regular file of a directory; see `open_inside`."""
    with open_inside(directory, name, most) as file:
        return os.fstat(file.fileno())


def is_inside(directory: Path, name: str) -> bool:
    """Returns whether a directory has a regular file of this name; see
    `open_inside`."""
    try:
        open_inside(directory, name).close()
    except OSError:
        return False
    return True
