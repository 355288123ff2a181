"""Reading and writing files, here or in an object store under a URL: `gs://bucket/run`.

Run directories, players and games may come from anywhere. Nothing that is read from
them is executed; readers bound the size of what they read, do not wait for pipes, and
`open_inside` follows no link out of a directory. Files are replaced as a whole, so that
readers see the old or the new content, and a planted link is removed, not followed.

Object stores have no locks and no appending; objects are replaced as a whole.
`etils.epath` accesses them through a library per store.
"""

import contextlib
import errno
import importlib.util
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from etils import epath

LIBRARIES = {"gs": "gcsfs", "s3": "s3fs", "az": "adlfs", "hf": "huggingface_hub"}
_EXTRAS = {"gs": "'azjax[gcs]'", "hf": "'azjax[hub]'"}  # that install a library
RUN_SCHEME = "gs"  # the scheme that Orbax can write checkpoints to

Directory: TypeAlias = Path | epath.Path

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_LOST_SLASH = re.compile(rf"({'|'.join(LIBRARIES)}):/[^/]")
# Modules of the libraries' errors, and TensorStore's statuses.
_LIBRARY_MODULES = {
    *("aiohttp", "azure", "botocore", "fsspec", "gcsfs", "google"),
    *("httpx", "httpx2", "huggingface_hub", "requests"),
}
_STATUS = re.compile(
    r"(ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION|INTERNAL|NOT_FOUND|"
    r"PERMISSION_DENIED|RESOURCE_EXHAUSTED|UNAUTHENTICATED|UNAVAILABLE|UNKNOWN): "
)


def as_directory(name: str | os.PathLike[str]) -> Directory:
    """Returns the path of a directory to read from.

    Args:
        name: a local path, or the URL of a directory in an object store.

    Raises:
        ValueError: the URL's scheme is unknown, its library is not installed, or it has
            no bucket.
    """
    text = os.fspath(name)
    url = _URL.fullmatch(text)
    if url is None and _LOST_SLASH.match(text):
        raise ValueError(f"{text} is not a URL: pathlib.Path drops a slash, use a str")
    if url is None:
        return Path(text)
    scheme, place = url.groups()
    if scheme not in LIBRARIES:
        known = ", ".join(f"{known}://" for known in LIBRARIES)
        raise ValueError(f"unknown scheme in {text}: use a local directory, or {known}")
    if importlib.util.find_spec(LIBRARIES[scheme]) is None:
        library = LIBRARIES[scheme]
        raise ValueError(
            f"{text} needs the library {library}, which is not installed: pip install "
            f"{_EXTRAS.get(scheme, library)}"
        )
    if not place.strip("/"):
        raise ValueError(f"{text} names no bucket")
    return epath.Path(text)


def as_run_directory(name: str | os.PathLike[str]) -> Directory:
    """Returns the path of a run directory, to read and write.

    Raises:
        ValueError: as in `as_directory`, or Orbax cannot write checkpoints there.
    """
    scheme, slashes, _ = os.fspath(name).partition("://")
    if slashes and scheme in LIBRARIES and scheme != RUN_SCHEME:
        raise ValueError(
            "a run directory must be local or in "
            f"{RUN_SCHEME}://, where Orbax can write checkpoints: {name}"
        )
    return as_directory(name)


def is_remote(directory: Directory) -> bool:
    """Returns whether a directory is in an object store."""
    return not isinstance(directory, Path)


def resolved(directory: Directory) -> Directory:
    """Returns the absolute path of a directory, which can be compared."""
    return directory if is_remote(directory) else directory.resolve()


def open_regular(path: Directory, most: int) -> BinaryIO:
    """Opens a regular file for reading, following links. A file in an object store is
    downloaded first.

    Raises:
        OSError: there is no regular file, it has more than `most` bytes, or the store
            cannot be read.
    """
    if not isinstance(path, Path):
        with store_errors(path):
            about = path.stat()
            if about.is_directory:
                raise OSError(f"{path.name} is not a regular file")
            if about.length > most:
                raise OSError(f"{path.name} has more than {most} bytes")
            with path.open("rb") as file:  # it may have grown
                return io.BytesIO(file.read(about.length))
    return _opened(path, str(path), most)


def open_inside(directory: Path, name: str, most: int | None = None) -> BinaryIO:
    """Opens a regular file of a directory of any origin for reading.

    Args:
        directory: the directory; may be a link.
        name: path of the file, relative to the directory.
        most: largest allowed size in bytes; None allows any.

    Raises:
        OSError: the file does not exist, is reached by a link, is not a regular file,
            or is too large.
    """
    path = os.path.join(os.path.realpath(directory), *name.split("/"))
    if os.path.realpath(path) != path:
        raise OSError(f"{name} is reached by a link")
    return _opened(path, name, most, getattr(os, "O_NOFOLLOW", 0))


def _opened(path: str | Path, name: str, most: int | None, flags: int = 0) -> BinaryIO:
    # Opening a pipe must not block.
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    about = os.fstat(descriptor)
    is_regular = stat.S_ISREG(about.st_mode)
    if is_regular and (most is None or about.st_size <= most):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    problem = f"has more than {most} bytes" if is_regular else "is not a regular file"
    raise OSError(f"{name} {problem}")


def read_inside(directory: Path, name: str, most: int) -> bytes:
    """Returns the content of a regular file of a directory; see `open_inside`."""
    with open_inside(directory, name, most) as file:
        return file.read(most)


def read_whole(path: Path, most: int) -> bytes:
    """Returns the content of a file of any kind, such as a pipe.

    Raises:
        OSError: it cannot be read, or has more than `most` bytes.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def write_new(path: Directory, content: bytes | Iterable[bytes]) -> None:
    """Writes a file, given as a whole or in parts, in the place of one with this name.
    A link with this name, perhaps planted in a directory of any origin, is removed, and
    its target left alone."""
    if not isinstance(path, Path):
        path.write_bytes(content if isinstance(content, bytes) else b"".join(content))
        return
    path.unlink(missing_ok=True)
    with path.open("xb") as file:  # fails if somebody has made it meanwhile
        file.writelines([content] if isinstance(content, bytes) else content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Writes a file atomically, as a whole or in parts: readers see the old or the new
    content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_new(temporary, content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def store_errors(path: Directory) -> Iterator[None]:
    """A context that turns errors of an object store into a one-line OSError with the
    path; it does nothing for a local path."""
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
    """Returns the one-line message of an object store's error; None for other
    exceptions."""
    reason = getattr(error, "strerror", None) or str(error).strip()
    text = reason or type(error).__name__
    is_of_store = isinstance(error, OSError) or (
        type(error).__module__.partition(".")[0] in _LIBRARY_MODULES
    )
    # JAX's own errors start alike, but are RuntimeErrors.
    if isinstance(error, ValueError) and _STATUS.match(text):
        is_of_store = True
    if isinstance(error, FileNotFoundError) and error.errno is None:
        text = f"{os.strerror(errno.ENOENT)}: {text}"
    return " ".join(text.split())[:300] if is_of_store else None
