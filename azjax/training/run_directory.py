"""The run directory: made, checked against the configuration, written atomically."""

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TextIO

from azjax import games

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two processes apart
    fcntl = None

FORMAT = 1
CONFIG_FILE = "config.json"
CHECKPOINTS = "checkpoints"
_PARTIAL_FILE = f".{CONFIG_FILE}"
_LOCK_FILE = ".lock"
_LOOK_SECONDS = 0.2  # more than it takes to look whether somebody has the lock


class RunConfig(Protocol):
    """A run's configuration, of whatever way of learning."""

    @property
    def directory(self) -> Path:
        """Where the run is."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Returns the settings; `kind` among them unless it is AlphaZero's."""
        ...


@contextlib.contextmanager
def open_run_directory(config: RunConfig) -> Iterator[Path]:
    """A context that makes the directory of a new run, or checks that of one that goes
    on, and in which no other process may open it.

    Raises:
        ValueError: another run is in it, or something that is no run, or another
            process is at work there.
        OSError: it cannot be written.
    """
    directory = config.directory
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is no directory: give another --run-dir")
    with disk_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        is_run = (directory / CONFIG_FILE).exists()
        own_files = (_PARTIAL_FILE, _LOCK_FILE)
        if not is_run and any(
            path.name not in own_files for path in directory.iterdir()
        ):
            raise ValueError(
                f"{directory} is not empty and holds no run: give another --run-dir"
            )
        lock = (directory / _LOCK_FILE).open("w")
    with lock:
        _lock(lock, directory)
        if is_run:
            _check_same_run(directory, config)
        # Also where the run goes on: find out now, and not after the first chunk, that
        # nothing can be saved.
        with disk_errors(directory):
            partial = directory / _PARTIAL_FILE
            partial.write_text(json.dumps(_as_json(config), indent=2) + "\n")
            partial.replace(directory / CONFIG_FILE)
        yield directory


def _lock(file: TextIO, directory: Path) -> None:
    """Locks a file; the system unlocks it, however this process may end."""
    if _try_lock(file, exclusive=True):
        return
    time.sleep(_LOOK_SECONDS)  # perhaps somebody just looks
    if not _try_lock(file, exclusive=True):
        raise ValueError(
            f"another process is training in {directory}: wait for it, stop it, or "
            "give another --run-dir"
        )


def _try_lock(file: TextIO, *, exclusive: bool) -> bool:
    """Locks a file unless another process has; returns whether none has."""
    if fcntl is None:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at_work(directory: Path) -> bool:
    """Returns whether a process is training in a run directory now; on Windows, where
    nobody can tell, False."""
    try:
        with (directory / _LOCK_FILE).open() as lock:
            return not _try_lock(lock, exclusive=False)
    except OSError:  # no run has ever been here
        return False


@contextlib.contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """A context in which what the file system refuses is an OSError that names the
    directory and says what to do.

    TensorStore, which writes the arrays of a checkpoint, raises a ValueError with the
    system's error number in its text.
    """
    try:
        yield
    except Exception as error:
        code = re.search(r"os_error_code='(\d+)'", str(error))
        number = error.errno if isinstance(error, OSError) else code and int(code[1])
        if not number:
            raise
        raise OSError(
            number,
            f"{os.strerror(number)}; the run cannot be saved there, what was saved "
            "before is whole: make it writable, make room, or give another --run-dir",
            str(directory),
        ) from error


def read_config(directory: Path) -> dict[str, Any]:
    """Returns what `config.json` says.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        found = json.loads((directory / CONFIG_FILE).read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{directory / CONFIG_FILE} is damaged: {error}; give another --run-dir"
        ) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        version = found.get("format") if isinstance(found, dict) else None
        raise ValueError(
            f"{directory} holds a run of format {version!r}; this version of azjax "
            f"goes on with format {FORMAT}: give another --run-dir"
        )
    return found


def _check_same_run(directory: Path, config: RunConfig) -> None:
    found, wanted = read_config(directory), _as_json(config)
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        found["game"] = repr(games.make(found["game"]))  # as `config` spells it
    if found.get("kind") != wanted.get("kind") and _has_begun(directory):
        raise ValueError(
            f"{directory} holds a run of another way of learning: give another "
            "--run-dir"
        )
    differences = _differences(found, wanted)
    if differences and _has_begun(directory):
        raise ValueError(
            f"{directory} holds a run with another configuration "
            f"({'; '.join(differences)}): give the same one to go on, or another "
            "--run-dir"
        )


def _has_begun(directory: Path) -> bool:
    """Returns whether there is a checkpoint, whole or not: before the first one there
    is nothing to go on with, and another configuration harms nobody."""
    checkpoints = directory / CHECKPOINTS
    return checkpoints.is_dir() and any(checkpoints.iterdir())


def _as_json(config: RunConfig) -> dict[str, Any]:
    """Returns the configuration as JSON would give it back; a run directory that was
    moved or is reached by another path is still the same run."""
    values = json.loads(json.dumps({"format": FORMAT, **config.to_json()}))
    del values["run_dir"]
    return values


def _differences(
    found: dict[str, Any], wanted: dict[str, Any], prefix: str = ""
) -> list[str]:
    differences = []
    for key in [*wanted, *(key for key in found if key not in wanted)]:
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            differences += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differences.append(f"{prefix}{key} was {old}, is {new}")
    return differences
