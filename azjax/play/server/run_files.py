"""Safe reading of untrusted run directories: no links, pipes or large files."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

# Does not block on pipes and does not follow links.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_inside(directory: Path, name: str, most: int | None = None) -> BinaryIO:
    """Opens a regular file of a directory for reading.

    Args:
        directory: directory of a run; may be a link.
        name: path of the file, relative to the directory.
        most: largest allowed size in bytes; None allows any.

    Raises:
        OSError: the file does not exist, is reached by a link, is not a regular file,
            or is too large.
    """
    path = os.path.join(os.path.realpath(directory), *name.split("/"))
    if os.path.realpath(path) != path:
        raise OSError(f"{name} is reached by a link")
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{name} is not a regular file")
        if most is not None and status.st_size > most:
            raise OSError(f"{name} is larger than {most} bytes")
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_inside(directory: Path, name: str, most: int) -> bytes:
    """Returns the content of a regular file of a directory; see `open_inside`."""
    with open_inside(directory, name, most) as file:
        return file.read(most)


def stat_inside(directory: Path, name: str, most: int | None = None) -> os.stat_result:
    """Returns the status of a regular file of a directory; see `open_inside`."""
    with open_inside(directory, name, most) as file:
        return os.fstat(file.fileno())


def is_inside(directory: Path, name: str) -> bool:
    """Returns whether a regular file of a directory exists; see `open_inside`."""
    try:
        open_inside(directory, name).close()
    except OSError:
        return False
    return True
