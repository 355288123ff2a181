"""The run directory: creation, lock, comparison with the configuration, and the local
copy of a remote one."""

import contextlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeGuard

from azjax import games
from azjax.files import (
    Directory,
    as_directory,
    is_remote,
    open_regular,
    resolved,
    store_errors,
    write_new,
)
from azjax.players.serialization import MAX_CONFIG_BYTES
from azjax.settings import FORMAT, check_format
from azjax.training.config import RunConfig
from azjax.training.run.metrics import MAX_METRICS_BYTES, METRICS_FILE, read_metrics
from azjax.training.run.optimizer_identity import DEFAULT, comparable
from azjax.training.run.processes import (
    check_same,
    check_shared,
    is_first_process,
    raise_on_all_processes,
)
from azjax.training.run.sinks import MAX_STATE_BYTES, STATE_FILES

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None

CONFIG_FILE = "config.json"
CHECKPOINTS = "checkpoints"
LOCK_FILE = ".lock"
UNFINISHED = ".orbax-checkpoint-tmp"  # in the names of checkpoints being written
_RETRY_SECONDS = 0.2  # longer than `is_at_work` holds the lock
_PARTIAL_FILE = f".{CONFIG_FILE}"
_SET_BY_LENGTH = ("self_play.", "replay.", "evaluation.")  # by presets
_ARRAYS = "d"  # directories of Orbax with the arrays of a checkpoint
_MAX_DESCRIPTION_BYTES = 2**24  # of their other files, which are read whole
_MAX_FIRST_BYTES = 2**20  # of the metrics, more than their first rows need


@contextlib.contextmanager
def open_run_directory(
    config: RunConfig,
    optimizer: dict[str, Any] | str | None = None,
    report: Callable[[str], None] = print,
    *,
    hooks: Sequence[str] = (),
) -> Iterator[Directory]:
    """A context that creates the directory of a new run, or checks that of a continued
    one, and locks it. A remote directory cannot be locked: two runs in one overwrite
    each other's files. Of several processes the first one does this; the others must
    have the same settings and see the same directory.

    The settings of a continued run are written at the end of the context, if no error
    was raised: a run that this version cannot continue stays unchanged.

    Args:
        config: the run's settings.
        optimizer: result of `optimizer_identity`, or a name; None if it is fixed.
        report: called with a line about settings that cannot be compared.
        hooks: names of the functions that the user replaced.

    Raises:
        ValueError: the directory holds another run or other files, or another process
            is training there.
        OSError: it cannot be written.
    """
    values = _as_json(config, optimizer, hooks)
    check_same(values)
    with contextlib.ExitStack() as stack:
        with raise_on_all_processes():
            if is_first_process():
                stack.enter_context(_opened(config.directory, values, report))
        check_shared(config.directory)
        yield config.directory


@contextlib.contextmanager
def _opened(
    directory: Directory, values: dict[str, Any], report: Callable[[str], None]
) -> Iterator[None]:
    """`open_run_directory` in the first process."""
    try:
        str(resolved(directory)).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"the run directory {str(directory)!a} must be text in the locale's "
            "encoding, for TensorStore: give another --run-dir, or set a UTF-8 locale"
        ) from None
    with disk_errors(directory):
        is_run = _is_run(directory)
        _check_entries(directory)
        if not is_remote(directory):  # an object store would create a bucket
            directory.mkdir(parents=True, exist_ok=True)
        lock = locked(directory)
    with lock:
        values = values | {"run": secrets.token_hex(8)}
        if is_run:
            _check_checkpoints(directory)
            values = _check_same_run(directory, values, report)
        partial = directory / _PARTIAL_FILE
        # Also when the run continues: a failure to write shows now, not after a chunk.
        with disk_errors(directory):
            write_new(partial, (json.dumps(values, indent=2) + "\n").encode())
        try:
            if not has_begun(directory):
                partial.replace(directory / CONFIG_FILE)
            yield
            if partial.exists():
                with disk_errors(directory):
                    partial.replace(directory / CONFIG_FILE)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


def check_run_directory(config: RunConfig) -> None:
    """Checks that a run with the default optimizer can begin or continue in its
    directory; writes nothing.
    """
    directory = config.directory
    if _is_run(directory):
        _check_checkpoints(directory)
        values = _as_json(config, DEFAULT, ())
        _check_same_run(directory, values, lambda text: None)


def _is_run(directory: Directory) -> bool:
    """Returns whether a directory holds a run; if not, it is empty or missing."""
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give another --run-dir")
    if (directory / CONFIG_FILE).exists():
        return True
    paths = directory.iterdir() if directory.exists() else ()
    if any(path.name not in (_PARTIAL_FILE, LOCK_FILE) for path in paths):
        raise ValueError(
            f"{directory} is not empty and not a run: give another --run-dir"
        )
    return False


def _check_entries(directory: Directory) -> None:
    """Checks that training in a directory of any origin changes and reads only what is
    in it: no link leads to a directory elsewhere, no pipe or device is a file, and the
    checkpoints have no links to directories and no descriptions of any size.
    """
    if not isinstance(directory, Path):
        return
    own, checkpoints = directory.resolve(), directory / CHECKPOINTS
    for parent, folders, files in os.walk(directory):
        is_checkpoint = Path(parent).is_relative_to(checkpoints)
        for path in (Path(parent, name) for name in (*folders, *files)):
            target = Path(os.path.realpath(path))  # also of a link to itself
            if target.is_dir() and not target.is_relative_to(own):
                raise ValueError(
                    f"{path} is a link to {target}, outside of the run directory, "
                    "where a run changes nothing: remove it, or move the directory here"
                )
            if target.exists() and not (target.is_dir() or target.is_file()):
                raise ValueError(f"{path} is not a regular file: remove it")
            if not is_checkpoint:
                continue
            if path.is_symlink() and target.is_dir():  # Orbax deletes no links
                raise ValueError(f"{path} is a link: move its target there")
            is_description = target.is_file() and path.parent.name != _ARRAYS
            if is_description and target.stat().st_size > _MAX_DESCRIPTION_BYTES:
                raise ValueError(
                    f"{path} has more than {_MAX_DESCRIPTION_BYTES} bytes, which no "
                    "checkpoint has there: move the checkpoint away"
                )


def _check_checkpoints(directory: Directory) -> None:
    """Checks that a run with completed iterations has begun to save a checkpoint.

    Before that the metrics hold at most the evaluation of the initial network, so that
    reading the beginning of the file suffices.
    """
    if _checkpoint_names(directory):
        return
    path = directory / METRICS_FILE
    try:
        rows = read_metrics(path, _MAX_FIRST_BYTES)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read: {error.strerror or error}; give another --run-dir"
        ) from None
    if any(row.get("iteration") != 0 for row in rows):
        raise ValueError(
            f"{directory} holds the metrics of a run without checkpoints: give another "
            "--run-dir"
        )


def system_error_number(error: BaseException) -> int | None:
    """Returns the operating system's error number behind an exception, if any.

    TensorStore raises a ValueError with the number in its message.
    """
    if isinstance(error, OSError):
        return error.errno
    code = re.search(r"os_error_code='(\d+)'", str(error))
    return int(code[1]) if code else None


@contextlib.contextmanager
def disk_errors(directory: Directory) -> Iterator[None]:
    """A context that turns file system errors into an OSError with the directory and
    advice."""
    try:
        with store_errors(directory):
            yield
    except Exception as error:
        number = system_error_number(error)
        if not number:
            raise
        reason = getattr(error, "strerror", None) or os.strerror(number)
        raise OSError(
            number,
            f"{reason}; the run cannot be saved there, earlier checkpoints are intact: "
            "make it writable, free space, or give another --run-dir",
            str(getattr(error, "filename", None) or directory),
        ) from error


def read_config(path: Directory) -> dict[str, Any]:
    """Reads a `config.json`, of any origin; raises a ValueError if it is damaged or of
    another format."""
    content = _read(path)
    try:
        return check_format(content)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _read(path: Directory) -> Any:
    try:
        with open_regular(path, MAX_CONFIG_BYTES) as file:
            return json.loads(file.read(MAX_CONFIG_BYTES))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def is_run_id(value: object) -> TypeGuard[str]:
    """Returns whether a value can be the id of a run, in files of any origin."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{1,32}", value) is not None


def run_id(directory: Directory) -> str:
    """Returns the id of the run in a directory: random, made when the run began, the
    same in copies of the directory. Raises a ValueError if there is no run any more."""
    try:
        content = _read(directory / CONFIG_FILE)
    except FileNotFoundError:
        content = None
    run = content.get("run") if isinstance(content, dict) else None
    if not is_run_id(run):
        raise ValueError(f"there is no run in {directory}: its {CONFIG_FILE} has no id")
    return run


def check_still_there(directory: Directory, run: str) -> None:
    """Checks that a run directory has not been removed or replaced."""
    with contextlib.suppress(ValueError):
        if run_id(directory) == run:
            return
    raise ValueError(
        f"{directory} was removed or replaced while the run trained: the run is "
        "stopped, and nothing more is written there"
    )


def _check_same_run(
    directory: Directory, wanted: dict[str, Any], report: Callable[[str], None]
) -> dict[str, Any]:
    """Checks that the settings are those of the run in the directory. Returns them,
    completed with settings that only the run has."""
    try:
        saved = read_config(directory / CONFIG_FILE)
    except ValueError as error:
        raise ValueError(f"{error}; give another --run-dir") from None
    if is_run_id(saved.get("run")):
        wanted |= {"run": saved["run"]}
    if not has_begun(directory):
        return wanted
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        saved["game"] = repr(games.make(saved["game"]))  # the spelling of `config`
    if saved.get("kind") != wanted.get("kind"):
        raise ValueError(
            f"{directory} holds a run of another algorithm: give another --run-dir"
        )
    for name in ("initial_player", "repeat_schedule"):  # used at the start only
        is_kept = wanted.get(name, "") is None
        with contextlib.suppress(KeyError, OSError, TypeError, ValueError):
            old, new = (resolved(as_directory(of[name])) for of in (saved, wanted))
            is_kept |= old == new
        if is_kept:
            wanted = wanted | {name: saved.get(name)}
    # Some settings may change, others cannot be compared.
    saved, compared = dict(saved), dict(wanted)
    for settings in (saved, compared):
        for name in ("notes", "minutes", "iterations", "data", "report", "run"):
            settings.pop(name, None)
    old, new = saved.get("optimizer"), compared.get("optimizer")
    if isinstance(old, dict) and isinstance(new, dict):
        saved["optimizer"], compared["optimizer"] = comparable(old, new)
        if old.get("versions") != new.get("versions"):
            before, now = (
                ", ".join(f"{name} {version}" for name, version in versions.items())
                if isinstance(versions := identity.get("versions"), dict)
                else "unknown"
                for identity in (old, new)
            )
            report(
                f"the run started with {before}, continues with {now}: only the state "
                "and the constants of the optimizer were compared"
            )
    differences = _differences(saved, compared)
    if not differences:
        return wanted
    by_length = by_player = ""
    has_other_length = saved.get("minutes") != wanted.get("minutes")
    is_set = any(d.startswith(_SET_BY_LENGTH) for d in differences)
    if has_other_length and is_set and "kind" not in wanted:
        by_length = (
            "; presets choose some settings by the minutes: "
            "azjax.training.load_config returns those of the run"
        )
    has_other_player = any(d.startswith(("network.", "game ")) for d in differences)
    if not has_other_player and "initial_player" in wanted:
        by_player = f"; to start a new run with its player: --from {directory}"
    raise ValueError(
        f"{directory} holds a run with another configuration "
        f"({'; '.join(differences)}{by_length}): give the same one to continue it, or "
        f"another --run-dir{by_player}"
    )


def has_begun(directory: Directory) -> bool:
    """Returns whether a checkpoint exists, intact or not; until then the configuration
    may change, and a run that was killed begins with its initial weights."""
    return any(UNFINISHED not in name for name in _checkpoint_names(directory))


def _checkpoint_names(directory: Directory) -> list[str]:
    """Returns the names of the checkpoints, those being written included."""
    checkpoints = directory / CHECKPOINTS
    with store_errors(checkpoints):
        if not checkpoints.is_dir():
            return []
        return [path.name for path in checkpoints.iterdir()]


def _as_json(
    config: RunConfig, optimizer: dict[str, Any] | str | None, hooks: Sequence[str]
) -> dict[str, Any]:
    """Returns the configuration as JSON values, without the directory, which may be
    moved."""
    values = {"format": FORMAT, **config.to_json()}
    if optimizer is not None:
        values["optimizer"] = optimizer
    if hooks:
        values["hooks"] = list(hooks)
    values = json.loads(json.dumps(values))
    del values["run_dir"]
    return values


def _differences(
    saved: dict[str, Any], wanted: dict[str, Any], prefix: str = ""
) -> list[str]:
    differences = []
    algorithm = saved.get("algorithm")
    if algorithm is not None and algorithm != wanted.get("algorithm"):
        # The settings of two search algorithms are not comparable.
        new = wanted.get("algorithm")
        return [f"{prefix}algorithm was {algorithm}, is {new}"]
    for key in [*wanted, *(key for key in saved if key not in wanted)]:
        old, new = saved.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            differences += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differences.append(f"{prefix}{key} was {old}, is {new}")
    return differences


def locked(
    directory: Directory, *, work: str = "training", option: str = "--run-dir"
) -> contextlib.AbstractContextManager[object]:
    """Locks an existing directory until the end of the returned context, or of the
    process. A remote directory is not locked.

    Raises a ValueError if another process has locked it, which names its `work` and the
    `option` that gives the directory.
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


class WorkingDirectory:
    """A local directory with files of a run.

    path: the local directory.
    directory: the run directory; equal to `path` unless it is remote.
    published: the versions of the files that are equal in both.
    """

    def __init__(self, path: Path, directory: Directory | None = None):
        self.path = path
        self.directory = directory or path
        self.published: dict[str, tuple[int, int]] = {}

    def changed(self, *names: str) -> list[str]:
        """Returns the files that differ from those of the run directory, in files and
        directories of these names, by default all."""
        if self.path == self.directory:
            return []
        files = (path for path in sorted(self.path.rglob("*")) if path.is_file())
        paths = {path.relative_to(self.path).as_posix(): path for path in files}
        return [
            name
            for name, path in paths.items()
            if _version(path) != self.published.get(name)
            and (not names or name.split("/")[0] in names)
            and not path.name.startswith(".")  # unfinished
        ]

    def publish(self, *names: str) -> None:
        """Copies changed files and directories of these names, by default all, to a
        remote run directory, each file atomically."""
        for name in self.changed(*names):
            path, target = self.path / name, self.directory / name
            version = _version(path)
            with store_errors(self.directory):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
            self.published[name] = version


@contextlib.contextmanager
def working_directory(directory: Directory) -> Iterator[WorkingDirectory]:
    """A context with the directory in which a run writes.

    For a remote run directory it is a temporary directory with the run's metrics and
    the ids of its runs in services. At the end changed files are copied and the
    temporary directory is removed; if that fails, the files stay and a line on the
    standard error names them.
    """
    if isinstance(directory, Path):
        yield WorkingDirectory(directory)
        return
    path = Path(tempfile.mkdtemp(prefix="azjax-"))
    working = WorkingDirectory(path, directory)
    try:
        sizes = {METRICS_FILE: MAX_METRICS_BYTES}
        for name, most in (sizes | dict.fromkeys(STATE_FILES, MAX_STATE_BYTES)).items():
            with contextlib.suppress(FileNotFoundError):
                with open_regular(directory / name, most) as file:
                    (path / name).parent.mkdir(exist_ok=True)
                    (path / name).write_bytes(file.read())
                working.published[name] = _version(path / name)
        yield working
    finally:
        try:
            working.publish()
        except OSError as error:
            names = ", ".join(working.changed())
            text = f"not copied to {directory}, still in {path} ({error}): {names}"
            with contextlib.suppress(OSError):  # the log's disk may be full
                print(f"azjax: {text}", file=sys.stderr, flush=True)
        else:
            shutil.rmtree(path)


def _version(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size
