"""Directories on this machine, or in an object store under a URL: `gs://bucket/run`.

An object store has no locks, and nothing is appended to there; an object is replaced as
a whole. `etils.epath` reads and writes the objects by a library of each store.
"""

import contextlib
import errno
import importlib.util
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from etils import epath

LIBRARIES = {"gs": "gcsfs", "s3": "s3fs", "az": "adlfs", "hf": "huggingface_hub"}
RUN_SCHEME = "gs"  # the one that Orbax writes checkpoints to

Directory: TypeAlias = Path | epath.Path

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_LOST_SLASH = re.compile(rf"({'|'.join(LIBRARIES)}):/[^/]")
# Errors of the libraries, and what TensorStore says of an object store.
_LIBRARY_MODULES = {
    *("aiohttp", "azure", "botocore", "fsspec", "gcsfs", "google"),
    *("httpx", "huggingface_hub", "requests"),
}
_STATUS = re.compile(
    r"(ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION|INTERNAL|NOT_FOUND|"
    r"PERMISSION_DENIED|RESOURCE_EXHAUSTED|UNAUTHENTICATED|UNAVAILABLE|UNKNOWN): "
)


def as_directory(name: str | os.PathLike[str]) -> Directory:
    """Returns the path of a directory to read from.

    Args:
        name: a path of this machine, or the URL of a directory in an object store.

    Raises:
        ValueError: the URL's scheme is unknown, its library is not installed, or it
            names no bucket.
    """
    text = os.fspath(name)
    url = _URL.fullmatch(text)
    if url is None and _LOST_SLASH.match(text):
        raise ValueError(f"{text} is no URL: a pathlib.Path drops a slash, give a text")
    if url is None:
        return Path(text)
    scheme, place = url.groups()
    if scheme not in LIBRARIES:
        known = ", ".join(f"{known}://" for known in LIBRARIES)
        raise ValueError(f"unknown scheme in {text}: a directory is local, or {known}")
    if importlib.util.find_spec(LIBRARIES[scheme]) is None:
        library = LIBRARIES[scheme]
        raise ValueError(
            f"{text} needs the library {library}, which is not installed: pip install "
            f"{library}"
        )
    if not place.strip("/"):
        raise ValueError(f"{text} names no bucket")
    return epath.Path(text)


def as_run_directory(name: str | os.PathLike[str]) -> Directory:
    """Returns the path of a run's directory, to read from and to write to.

    Raises:
        ValueError: as in `as_directory`, or no checkpoints can be written there.
    """
    scheme, slashes, _ = os.fspath(name).partition("://")
    if slashes and scheme in LIBRARIES and scheme != RUN_SCHEME:
        raise ValueError(
            f"a run is written to a local directory or to {RUN_SCHEME}://, where Orbax "
            f"writes checkpoints: {name}"
        )
    return as_directory(name)


def is_remote(directory: Directory) -> bool:
    """Returns whether a directory is in an object store."""
    return not isinstance(directory, Path)


def resolved(directory: Directory) -> Directory:
    """Returns the same directory from the root, by which two names can be compared."""
    return directory if is_remote(directory) else directory.resolve()


def open_object(path: epath.Path, most: int) -> BinaryIO:
    """Reads an object of a store.

    Raises:
        OSError: there is none, it has more than `most` bytes, or cannot be read.
    """
    with store_errors(path):
        about = path.stat()
        if about.is_directory:
            raise OSError(f"{path.name} is not a regular file")
        if about.length > most:
            raise OSError(f"{path.name} has more than {most} bytes")
        with path.open("rb") as file:  # no more, should it grow meanwhile
            return io.BytesIO(file.read(about.length))


@contextlib.contextmanager
def store_errors(path: Directory) -> Iterator[None]:
    """A context in which what an object store refuses is an OSError of one line that
    names the path; nothing changes for a local path."""
    try:
        yield
    except Exception as error:
        problem = store_problem(error) if is_remote(path) else None
        if problem is None:
            raise
        is_missing = isinstance(error, FileNotFoundError)
        number = errno.ENOENT if is_missing else errno.EIO
        number = getattr(error, "errno", None) or number
        raise OSError(number, problem, str(path)) from error


def store_problem(error: BaseException) -> str | None:
    """Returns in one line what an object store refused; None if that is not why the
    exception was raised."""
    reason = getattr(error, "strerror", None) or str(error).strip()
    text = reason or type(error).__name__
    is_of_store = isinstance(error, OSError) or (
        type(error).__module__.partition(".")[0] in _LIBRARY_MODULES
    )
    # JAX's own errors, which are RuntimeErrors, begin in the same way.
    if isinstance(error, ValueError) and _STATUS.match(text):
        is_of_store = True
    if isinstance(error, FileNotFoundError) and error.errno is None:
        text = f"{os.strerror(errno.ENOENT)}: {text}"
    return " ".join(text.split())[:300] if is_of_store else None
