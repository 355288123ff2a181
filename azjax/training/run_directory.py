"""The run directory: made, checked against the configuration, written atomically."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from azjax import games
from azjax.players.schema import VERSION, migrate
from azjax.players.serialization import MAX_CONFIG_BYTES
from azjax.players.weights import open_regular
from azjax.remote import Directory, as_directory, is_remote, resolved, store_errors
from azjax.training.config import BaseEvaluationConfig, CheckpointConfig
from azjax.training.distributed import (
    check_same,
    check_shared,
    fails_together,
    is_first,
)
from azjax.training.lock import LOCK_FILE, locked
from azjax.training.metrics import METRICS_FILE, read_metrics
from azjax.training.optimizer_identity import comparable

CONFIG_FILE = "config.json"
CHECKPOINTS = "checkpoints"
_PARTIAL_FILE = f".{CONFIG_FILE}"
_MAX_FIRST_BYTES = 2**20  # of the metrics, more than their first rows take


class RunConfig(Protocol):
    """A run's configuration, of any algorithm."""

    @property
    def directory(self) -> Directory:
        """Where the run is."""
        ...

    @property
    def game(self) -> str:
        """What is learnt."""
        ...

    @property
    def minutes(self) -> float | None:
        """How long the run lasts, None if it is measured in iterations."""
        ...

    @property
    def iterations(self) -> int | None:
        """How long the run lasts, None if it is measured in minutes."""
        ...

    @property
    def evaluation(self) -> BaseEvaluationConfig:
        """How it is measured."""
        ...

    @property
    def checkpoint(self) -> CheckpointConfig:
        """How often it is saved."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Returns the settings; `kind` among them unless it is AlphaZero's."""
        ...


@contextlib.contextmanager
def open_run_directory(
    config: RunConfig,
    optimizer: dict[str, Any] | str | None = None,
    report: Callable[[str], None] = print,
    *,
    hooks: Sequence[str] = (),
) -> Iterator[Directory]:
    """A context that makes the directory of a new run, or checks that of one that goes
    on, and in which no other process may open it. A remote directory cannot be locked:
    two runs that are started in one overwrite each other's files.

    The settings of a run that has begun are written at the end of the context, and only
    without an error: a run that this version cannot continue stays as it is.

    Args:
        config: the run's settings.
        optimizer: what `optimizer_identity` returns, or a name; None if there is no
            choice.
        report: called with a line about settings that cannot be compared.
        hooks: names of the parts of the algorithm that the user replaced.

    Raises:
        ValueError: another run is in it, or something that is no run, or another
            process is at work there.
        OSError: it cannot be written.
    """
    directory = config.directory
    with disk_errors(directory):
        is_run = _is_run(directory)
        lock = locked(directory)
    with lock:
        values = _as_json(config, optimizer, hooks)
        if is_run:
            _check_checkpoints(directory)
            values = _check_same_run(directory, values, report)
        partial = directory / _PARTIAL_FILE
        # Also where the run goes on: find out now, and not after the first chunk, that
        # nothing can be saved.
        with disk_errors(directory):
            partial.write_text(json.dumps(values, indent=2) + "\n")
        try:
            if not has_begun(directory):
                partial.replace(directory / CONFIG_FILE)
            yield directory
            if partial.exists():
                with disk_errors(directory):
                    partial.replace(directory / CONFIG_FILE)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


@contextlib.contextmanager
def open_shared_directory(
    config: RunConfig,
    optimizer: dict[str, Any] | str | None = None,
    report: Callable[[str], None] = print,
    *,
    hooks: Sequence[str] = (),
) -> Iterator[Directory]:
    """`open_run_directory` for a run of one or several processes, which the first one
    opens.

    Raises:
        ValueError: as there; or the processes have other settings or another directory
            than the first one.
        OSError: as there.
    """
    check_same(_as_json(config, optimizer, hooks))
    with contextlib.ExitStack() as stack:
        with fails_together():
            if is_first():
                opened = open_run_directory(config, optimizer, report, hooks=hooks)
                stack.enter_context(opened)
        check_shared(config.directory)
        yield config.directory


def _is_run(directory: Directory) -> bool:
    """Returns whether a directory has a run in it; else it is empty, and made here.

    Raises:
        ValueError: it is no directory, or something else is in it.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is no directory: give another --run-dir")
    if not is_remote(directory):  # an object store would make a bucket
        directory.mkdir(parents=True, exist_ok=True)
    if (directory / CONFIG_FILE).exists():
        return True
    found = directory.iterdir() if directory.exists() else ()
    if any(path.name not in (_PARTIAL_FILE, LOCK_FILE) for path in found):
        raise ValueError(
            f"{directory} is not empty and holds no run: give another --run-dir"
        )
    return False


def _check_checkpoints(directory: Directory) -> None:
    """Checks that a run which has done an iteration has a checkpoint, whole or not.

    Before the first iteration the metrics hold the evaluation of the first network at
    most, so that the beginning of the file is enough.
    """
    if has_begun(directory):
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
            f"{directory} holds the metrics of a run whose checkpoints are gone: give "
            "another --run-dir"
        )


def system_error_number(error: BaseException) -> int | None:
    """Returns the number of the system's error behind an exception, if there is one.

    TensorStore, which reads and writes the arrays of a checkpoint, raises a ValueError
    with the number in its text.
    """
    if isinstance(error, OSError):
        return error.errno
    code = re.search(r"os_error_code='(\d+)'", str(error))
    return int(code[1]) if code else None


@contextlib.contextmanager
def disk_errors(directory: Directory) -> Iterator[None]:
    """A context in which what the file system refuses is an OSError that names the
    directory and says what to do."""
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
            f"{reason}; the run cannot be saved there, what was saved "
            "before is whole: make it writable, make room, or give another --run-dir",
            str(directory),
        ) from error


def read_config(directory: Directory) -> dict[str, Any]:
    """Returns what `config.json` says, in the form of this version of azjax.

    Raises:
        ValueError: it cannot be read, or is of an unknown version.
    """
    return _migrate(_read(directory), directory)


def _read(directory: Directory) -> Any:
    try:
        with open_regular(directory / CONFIG_FILE, MAX_CONFIG_BYTES) as file:
            return json.loads(file.read(MAX_CONFIG_BYTES))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"{directory / CONFIG_FILE} is damaged: {error}; give another --run-dir"
        ) from None


def _migrate(content: Any, directory: Directory) -> dict[str, Any]:
    try:
        return migrate(content)
    except ValueError as error:
        raise ValueError(
            f"the run in {directory} cannot be read: {error}; give another --run-dir"
        ) from None


def _check_same_run(
    directory: Directory, wanted: dict[str, Any], report: Callable[[str], None]
) -> dict[str, Any]:
    """Returns the settings with what only the run that goes on knows."""
    content = _read(directory)
    found = _migrate(content, directory)
    if not has_begun(directory):
        return wanted
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        found["game"] = repr(games.make(found["game"]))  # as `config` spells it
    if found.get("kind") != wanted.get("kind"):
        raise ValueError(
            f"{directory} holds a run of another way of learning: give another "
            "--run-dir"
        )
    for name in ("initial_player", "plan"):  # needed at the start only
        if wanted.get(name, "") is None or _is_same_path(found, wanted, name):
            wanted = wanted | {name: found.get(name)}
    found, wanted_now = _comparable(found, wanted, report)
    # An older version did not have every setting of this one.
    differences = _differences(found, wanted_now, is_older=content["format"] < VERSION)
    if differences:
        raise ValueError(
            f"{directory} holds a run with another configuration "
            f"({'; '.join(differences)}{_from_length(found, wanted, differences)}): "
            "give the same one to go on, or another --run-dir"
            f"{_continuation(directory, differences, wanted)}"
        )
    return wanted


def _is_same_path(found: dict[str, Any], wanted: dict[str, Any], name: str) -> bool:
    """Returns whether two settings are paths of one directory."""
    paths = (found.get(name), wanted.get(name))
    if not all(isinstance(path, str) for path in paths):
        return False
    with contextlib.suppress(OSError, ValueError):
        first, second = (resolved(as_directory(str(path))) for path in paths)
        return first == second
    return False


def _from_length(
    found: dict[str, Any], wanted: dict[str, Any], differences: list[str]
) -> str:
    """Returns a note on settings that a preset chooses by the length of the run."""
    has_other_length = found.get("minutes") != wanted.get("minutes")
    is_chosen = any(
        text.startswith(("self_play.", "replay.", "evaluation."))
        for text in differences
    )
    return (
        "; presets choose some by the minutes, azjax.training.load_config returns "
        "those of the run"
        if has_other_length and is_chosen and "kind" not in wanted
        else ""
    )


def _continuation(
    directory: Directory, differences: list[str], wanted: dict[str, Any]
) -> str:
    """Returns how to learn further from what a run learnt, if that is possible."""
    has_other_player = any(
        text.startswith(("network.", "game ")) for text in differences
    )
    if has_other_player or "initial_player" not in wanted:
        return ""
    return f"; a new run that begins with the player of this one: --from {directory}"


def _comparable(
    found: dict[str, Any], wanted: dict[str, Any], report: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns two configurations without what cannot be compared, or may change."""
    found, wanted = dict(found), dict(wanted)
    for settings in (found, wanted):
        for name in ("notes", "minutes", "iterations"):
            settings.pop(name, None)
    old, new = found.get("optimizer"), wanted.get("optimizer")
    if old is None:  # a run of an older version
        found.pop("optimizer", None)
        wanted.pop("optimizer", None)
    elif isinstance(old, dict) and isinstance(new, dict):
        found["optimizer"], wanted["optimizer"] = comparable(old, new)
        if old.get("versions") != new.get("versions"):
            report(
                f"the run began with {_texts(old.get('versions'))}, and goes on with "
                f"{_texts(new.get('versions'))}: only the state and the constants of "
                "the optimizer were compared"
            )
    return found, wanted


def _texts(versions: object) -> str:
    items = versions.items() if isinstance(versions, dict) else ()
    return ", ".join(f"{name} {version}" for name, version in items) or "unknown"


def has_begun(directory: Directory) -> bool:
    """Returns whether there is a checkpoint, whole or not: before the first one there
    is nothing to go on with, and another configuration harms nobody."""
    checkpoints = directory / CHECKPOINTS
    with store_errors(checkpoints):
        return checkpoints.is_dir() and any(checkpoints.iterdir())


def _as_json(
    config: RunConfig, optimizer: dict[str, Any] | str | None, hooks: Sequence[str]
) -> dict[str, Any]:
    """Returns the configuration as JSON would give it back; a run directory that was
    moved or is reached by another path is still the same run."""
    values = {"format": VERSION, **config.to_json()}
    if optimizer is not None:
        values["optimizer"] = optimizer
    if hooks:
        values["hooks"] = list(hooks)
    values = json.loads(json.dumps(values))
    del values["run_dir"]
    return values


def _differences(
    found: dict[str, Any], wanted: dict[str, Any], prefix: str = "", *, is_older: bool
) -> list[str]:
    differences = []
    for key in [*wanted, *(key for key in found if key not in wanted)]:
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            differences += _differences(old, new, f"{prefix}{key}.", is_older=is_older)
        elif is_older and key not in found:
            continue
        elif old != new:
            differences.append(f"{prefix}{key} was {old}, is {new}")
    return differences
