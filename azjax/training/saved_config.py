"""The settings of a run, read from its directory."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

from azjax.config_registry import record_from_json
from azjax.players.registry import starts_program
from azjax.players.serialization import Q_LEARNING
from azjax.remote import Directory, as_directory, store_errors
from azjax.training.config import TrainConfig
from azjax.training.plan import plan_to_follow, read_plan
from azjax.training.q_config import QConfig
from azjax.training.run_config import ReportConfig
from azjax.training.run_directory import CONFIG_FILE, read_config

# Entries of the file that are not settings of a continued run.
_NOT_SETTINGS = ("format", "kind", "optimizer", "hooks", "plan", "run")
# Settings that reach outside a run's directory, which a file of settings cannot decide.
_OUTSIDE = ("run_dir", "initial_player", "learn_from", "stored_fraction", "report")
C = TypeVar("C", TrainConfig, QConfig)


def load_config(
    directory: str | os.PathLike[str], *, programs: bool = False
) -> TrainConfig:
    """Returns the settings with which a run of AlphaZero continues.

    Args:
        directory: the run directory, of any origin; it may have been moved.
        programs: whether the opponents may be programs, such as `gtp:COMMAND`, which
            training starts; only for a run of your own.

    Raises:
        ValueError: there is no run, it cannot be read, its settings are invalid, or an
            opponent is a program.
    """
    return _load(TrainConfig, None, as_directory(directory), programs=programs)


def load_q_config(
    directory: str | os.PathLike[str], *, programs: bool = False
) -> QConfig:
    """Returns the settings with which a run of Q-learning continues; see
    `load_config`."""
    return _load(QConfig, Q_LEARNING, as_directory(directory), programs=programs)


def load_any_config(directory: str | os.PathLike[str]) -> TrainConfig | QConfig:
    """Returns the settings of a run of either algorithm, to be read; see
    `load_config`."""
    directory = as_directory(directory)
    if _content(directory).get("kind") == Q_LEARNING:
        return _load(QConfig, Q_LEARNING, directory, programs=True)
    return _load(TrainConfig, None, directory, programs=True)


def _content(directory: Directory) -> dict[str, Any]:
    try:
        return read_config(directory / CONFIG_FILE)
    except OSError as error:
        problem = error.strerror or error
        raise ValueError(f"no run in {directory}: {problem}") from None


def _load(
    config_class: type[C], kind: str | None, directory: Directory, *, programs: bool
) -> C:
    content = _content(directory)
    if content.get("kind") != kind:
        raise ValueError(
            f"{directory} holds a run of another algorithm: give another --run-dir"
        )
    values = _settings(content)
    # The newest length, even if the run was killed before it wrote its settings.
    with contextlib.suppress(ValueError):
        unit, number = read_plan(directory).length
        values |= {"minutes": None, "iterations": None, unit: number}
    try:
        config = record_from_json(config_class, values | {"run_dir": str(directory)})
    except ValueError as error:
        raise ValueError(f"invalid settings in {directory}: {error}") from None
    _check_programs(config, directory, programs=programs)
    return config


def _check_programs(
    config: TrainConfig | QConfig, source: Directory, *, programs: bool
) -> None:
    """Refuses opponents that start programs, unless these are allowed: a file may come
    from anywhere."""
    is_q = isinstance(config, QConfig)
    opponents = config.opponents if is_q else config.evaluation.opponents
    started = [spec for spec in opponents if starts_program(spec)]
    if started and not programs:
        raise ValueError(
            f"the settings in {source} would start programs as opponents: "
            f"{', '.join(map(repr, started))}; settings in a file start none: give the "
            "opponents again with --evaluation.opponents, or in Python load the "
            "settings with programs=True"
        )


def _settings(content: dict[str, Any]) -> dict[str, Any]:
    return {name: content[name] for name in content if name not in _NOT_SETTINGS}


def config_from_file(
    path: str | os.PathLike[str],
    *,
    report: Callable[[str], None] = print,
    programs: bool = False,
    **changes: Any,
) -> TrainConfig:
    """Returns the settings in a `config.json` as those of a new run of AlphaZero.

    The file does not decide where the run is, what it reads, and where its metrics are
    sent: these settings are the defaults, unless `changes` has them.

    Args:
        path: the file, or the directory of the run that has it; of any origin.
        report: called with a line about the settings that are not taken from the file.
        programs: as of `load_config`.
        **changes: other fields of `TrainConfig`, usually `run_dir`.

    Raises:
        ValueError: there is no such file, it cannot be read, or its settings are
            invalid or of another algorithm.
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
    try:
        values = _settings(content)
        outside = {name: values.pop(name, None) for name in _OUTSIDE}
        config = record_from_json(TrainConfig, values)
    except ValueError as error:
        raise ValueError(f"invalid settings in {file}: {error}") from None
    _check_programs(config, file, programs=programs)
    defaults = dataclasses.asdict(config)
    left_out = [
        name
        for name, value in outside.items()
        if value and value != json.loads(json.dumps(defaults[name]))
    ]
    if left_out:
        report(f"not taken from {file}, only from options: {', '.join(left_out)}")
    return dataclasses.replace(config, **changes)


def repeated_config(
    directory: str | os.PathLike[str], *, programs: bool = False, **changes: Any
) -> TrainConfig:
    """Returns the settings that reproduce a run, iteration by iteration.

    Args:
        directory: of the run whose settings and plan are used.
        programs: as of `load_config`.
        **changes: other fields of `TrainConfig`, usually `run_dir`.

    Raises:
        ValueError: there is no run, or no plan to follow, or its length is changed.
    """
    if any(changes.get(name) is not None for name in ("minutes", "iterations")):
        raise ValueError(
            f"a run that follows the plan of {directory} has the length of that plan: "
            "change the length when it continues, without the plan"
        )
    _, end = plan_to_follow(as_directory(directory))
    length = {"minutes": None, "iterations": end, "plan": str(directory)}
    changes = {"run_dir": None, "report": ReportConfig(), **changes, **length}
    config = load_config(directory, programs=programs)
    return dataclasses.replace(config, **changes)
