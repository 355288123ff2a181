"""A lock that allows one training process per run directory."""

import contextlib
import os
import stat
import time
from pathlib import Path
from typing import TextIO

from azjax.remote import Directory

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None

LOCK_FILE = ".lock"
_RETRY_SECONDS = 0.2  # longer than `is_at_work` holds the lock


def locked(
    directory: Directory, *, work: str = "training", option: str = "--run-dir"
) -> contextlib.AbstractContextManager[object]:
    """Locks a directory until the end of the returned context, or of the process. A
    remote directory is not locked.

    Args:
        directory: which exists.
        work: of the process, for the message if another process has the lock.
        option: that gives the directory, for the same message.

    Raises:
        ValueError: another process has locked it.
        OSError: it cannot be written.
    """
    if not isinstance(directory, Path):
        return contextlib.nullcontext()
    # A link may have been planted: its target is not made or emptied.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(directory / LOCK_FILE, flags, 0o666), "r+")
    try:
        if not _try_lock(file, exclusive=True):
            time.sleep(_RETRY_SECONDS)  # `is_at_work` may hold it
            if not _try_lock(file, exclusive=True):
                raise ValueError(
                    f"another process is {work} in {directory}: wait for it, stop it, "
                    f"or give another {option}"
                )
    except BaseException:
        file.close()
        raise
    return file


def _try_lock(file: TextIO | int, *, exclusive: bool) -> bool:
    """Locks a file unless another process has; returns whether that succeeded."""
    if fcntl is None:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at_work(directory: Path) -> bool:
    """Returns whether a process is training in a run directory; always False on
    Windows.

    The directory may have any content: links are not followed and pipes not waited for.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        lock = os.open(directory / LOCK_FILE, flags)
    except OSError:  # no run
        return False
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return False
        return not _try_lock(lock, exclusive=False)
    except OSError:
        return False
    finally:
        os.close(lock)
