"""The settings of a run, read from its directory."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from azjax.files import Directory, as_directory, store_errors
from azjax.players.registry import reaches_outside
from azjax.players.serialization import Q_LEARNING
from azjax.settings import from_json
from azjax.text import quoted
from azjax.training.config import QConfig, ReportConfig, RunConfig, TrainConfig
from azjax.training.run.directory import CONFIG_FILE, has_begun, read_config
from azjax.training.run.schedule import read_schedule, schedule_to_repeat

# Entries of the file that are not settings of a continued run.
_NOT_SETTINGS = ("format", "kind", "optimizer", "hooks", "repeat_schedule", "run")
# The settings that reach outside of a run's directory, with the options that give them.
# A file decides none of them, for it may come from anywhere.
OUTSIDE = {
    "initial_player": "--from",
    "learn_from": "--learn-from",
    "opponent": "--opponent",
    "evaluation.opponents": "--evaluation.opponents",
    "report.sinks": "--report.sinks",
}
HOOKS = ("loss", "value_target", "sampler")  # arguments of `train`
C = TypeVar("C", bound=RunConfig)


def load_config(
    directory: str | os.PathLike[str],
    *,
    allowed: Collection[str] = (),
    report: Callable[[str], None] = print,
) -> TrainConfig:
    """Returns the settings with which a run of AlphaZero continues.

    Args:
        directory: the run directory, of any origin; it may have been moved.
        allowed: names in `OUTSIDE` of the settings that the file may decide: players
            that are programs or are loaded from elsewhere, games and weights to learn
            from, services that get the metrics; only for a run of your own.
        report: called with a line about the services, if the file names any and they
            are not allowed; a run continues without them.

    Raises:
        ValueError: there is no run, it cannot be read, its settings are invalid, or
            they reach outside of the run and are not allowed.
    """
    return load_settings(TrainConfig, directory, allowed=allowed, report=report)


def load_settings(
    kind: type[C],
    directory: str | os.PathLike[str],
    *,
    allowed: Collection[str] = (),
    report: Callable[[str], None] = print,
) -> C:
    """`load_config` for a run of either algorithm, given the class of its settings."""
    directory = as_directory(directory)
    config = _load(kind, directory)
    # A run that has begun has its weights.
    has_weights = has_begun(directory) and "initial_player" not in allowed
    if isinstance(config, TrainConfig) and has_weights:
        config = dataclasses.replace(config, initial_player=None)
    return _allowed(config, directory, allowed, report)


def load_any_config(directory: str | os.PathLike[str]) -> RunConfig:
    """Returns the settings of a run of either algorithm, to be read; to train with
    them, see `load_config`."""
    directory = as_directory(directory)
    kind = _content(directory).get("kind")
    return _load(QConfig if kind == Q_LEARNING else TrainConfig, directory)


def _content(directory: Directory) -> dict[str, Any]:
    try:
        return read_config(directory / CONFIG_FILE)
    except OSError as error:
        problem = error.strerror or error
        raise ValueError(f"no run in {directory}: {problem}") from None


def _load(kind: type[C], directory: Directory) -> C:
    content = _content(directory)
    if content.get("kind") != (Q_LEARNING if kind is QConfig else None):
        raise ValueError(
            f"{directory} holds a run of another algorithm: give another --run-dir"
        )
    values = {name: content[name] for name in content if name not in _NOT_SETTINGS}
    # The newest length, even if the run was killed before it wrote its settings.
    with contextlib.suppress(ValueError):
        unit, number = read_schedule(directory).length
        values |= {"minutes": None, "iterations": None, unit: number}
    try:
        return from_json(kind, values | {"run_dir": str(directory)})
    except ValueError as error:
        raise ValueError(f"invalid settings in {directory}: {error}") from None


def _allowed(
    config: C,
    source: Directory,
    allowed: Collection[str],
    report: Callable[[str], None],
) -> C:
    """Returns the settings without services that are not allowed, if all others that
    reach outside are."""
    _check_outside(config, source, {*allowed, "report.sinks"})
    if not config.report.sinks or "report.sinks" in allowed:
        return config
    services = " ".join(config.report.sinks)
    report(f"metrics go to {services} only with --report.sinks {services}")
    return dataclasses.replace(config, report=ReportConfig())


def _check_outside(
    config: RunConfig, source: Directory, allowed: Collection[str]
) -> None:
    """Checks that the settings of a file which reach outside of the run are allowed."""
    for name, value in outside_settings(config).items():
        if name not in allowed:
            raise ValueError(
                f"{name} in the settings of {source} reaches outside of the run, which "
                f"a file does not decide: {quoted(value, 200)}; give {OUTSIDE[name]} "
                f"again, or in Python load the settings with allowed=[{name!r}]"
            )


def outside_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the settings in `OUTSIDE` that a run has, with their values: of opponents
    those that are programs or are loaded from elsewhere."""
    found: dict[str, Any]
    if isinstance(config, QConfig):
        found = {"opponent": list(filter(reaches_outside, [config.opponent]))}
        opponents = config.opponents
    else:
        found = {"initial_player": config.initial_player}
        found |= {"learn_from": list(config.learn_from)}
        opponents = config.evaluation.opponents
    found["evaluation.opponents"] = list(filter(reaches_outside, opponents))
    found["report.sinks"] = list(config.report.sinks)
    return {name: value for name, value in found.items() if value}


def config_from_file(
    path: str | os.PathLike[str],
    *,
    report: Callable[[str], None] = print,
    allowed: Collection[str] = (),
    **changes: Any,
) -> TrainConfig:
    """Returns the settings in a `config.json` as those of a new run of AlphaZero.

    The file does not decide where the run is, what it reads, and where its metrics are
    sent: these settings are the defaults, unless `allowed` or `changes` has them.

    Args:
        path: the file, or the directory of the run that has it; of any origin.
        report: called with a line about the settings that are not taken from the file.
        allowed: as of `load_config`.
        **changes: other fields of `TrainConfig`, usually `run_dir`.

    Raises:
        ValueError: there is no such file, it cannot be read, its settings are invalid
            or of another algorithm, or opponents reach outside and are not allowed.
    """
    file = as_directory(path)
    with store_errors(file):
        file = file / CONFIG_FILE if file.is_dir() else file
    try:
        content = read_config(file)
    except OSError as error:
        raise ValueError(f"no settings in {file}: {error.strerror or error}") from None
    if content.get("kind") is not None:
        raise ValueError(f"the settings in {file} are of another algorithm")
    _report_functions(file, content, report)
    try:
        values = {name: content[name] for name in content if name not in _NOT_SETTINGS}
        config = from_json(TrainConfig, values | {"run_dir": None})
    except ValueError as error:
        raise ValueError(f"invalid settings in {file}: {error}") from None
    defaults = {
        "initial_player": {"initial_player": None},
        "learn_from": {"learn_from": (), "stored_fraction": 1.0},
        "report.sinks": {"report": ReportConfig()},
    }
    allowed = _with_changed(allowed, changes)
    _check_outside(config, file, {*allowed, *defaults})
    left_out = [
        name
        for name in outside_settings(config)
        if name in defaults and name not in allowed
    ]
    for name in left_out:
        config = dataclasses.replace(config, **defaults[name])
    if left_out:
        report(f"not taken from {file}, only from options: {', '.join(left_out)}")
    return dataclasses.replace(config, **changes)


def repeated_config(
    directory: str | os.PathLike[str],
    *,
    report: Callable[[str], None] = print,
    allowed: Collection[str] = (),
    **changes: Any,
) -> TrainConfig:
    """Returns the settings that reproduce a run, iteration by iteration.

    Args:
        directory: of the run whose settings and schedule are used.
        report: as of `load_config`.
        allowed: as of `load_config`; settings in `changes` are allowed too.
        **changes: other fields of `TrainConfig`, usually `run_dir`.

    Raises:
        ValueError: there is no run, or no schedule to repeat, or its length is changed,
            or its settings reach outside of it and are not allowed.
    """
    if any(changes.get(name) is not None for name in ("minutes", "iterations")):
        raise ValueError(
            f"a run that repeats the schedule of {directory} has its length: change "
            "the length when it continues, without the schedule"
        )
    source, allowed = as_directory(directory), _with_changed(allowed, changes)
    _report_functions(source, _content(source), report)
    _, end = schedule_to_repeat(source)
    config = _allowed(_load(TrainConfig, source), source, allowed, report)
    length = {"minutes": None, "iterations": end, "repeat_schedule": str(directory)}
    return dataclasses.replace(config, **{"run_dir": None, **changes, **length})


def _report_functions(
    source: Directory, content: dict[str, Any], report: Callable[[str], None]
) -> None:
    """Reports which functions of the user a run had; a file does not hold them."""
    hooks = content.get("hooks")
    names = [name for name in HOOKS if isinstance(hooks, list) and name in hooks]
    if isinstance(content.get("optimizer"), dict):
        names.append("optimizer")
    if names:
        report(
            f"the run of {source} was given {', '.join(names)}: functions of Python, "
            "which this one has only if they are passed to azjax.train again"
        )


def _with_changed(allowed: Collection[str], changes: Collection[str]) -> set[str]:
    """Returns the names in `OUTSIDE` that are allowed, or given by changes."""
    return {
        name for name in OUTSIDE if name in allowed or name.partition(".")[0] in changes
    }
