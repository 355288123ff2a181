"""The settings of a run, as its directory keeps them."""

import contextlib
import dataclasses
import os
from typing import Any, TypeVar

from azjax.players.q_serialization import KIND
from azjax.records import record_from_json
from azjax.remote import Directory, as_directory
from azjax.training.config import TrainConfig
from azjax.training.plan import plan_to_follow, read_plan
from azjax.training.q_config import QConfig
from azjax.training.run_directory import read_config

# In the file, and no settings of a run that goes on.
_KEPT_BESIDE = ("format", "kind", "optimizer", "hooks", "plan")
C = TypeVar("C", TrainConfig, QConfig)


def load_config(directory: str | os.PathLike[str]) -> TrainConfig:
    """Returns the settings of a run of AlphaZero, with which it goes on.

    Args:
        directory: the run's; it may have been moved, or come from somewhere else.

    Raises:
        ValueError: there is no run, it cannot be read, or its settings are not allowed.
    """
    return _load(TrainConfig, None, as_directory(directory))


def load_q_config(directory: str | os.PathLike[str]) -> QConfig:
    """Returns the settings of a run of Q-learning, with which it goes on; see
    `load_config`."""
    return _load(QConfig, KIND, as_directory(directory))


def _load(config_class: type[C], kind: str | None, directory: Directory) -> C:
    try:
        content = read_config(directory)
    except OSError as error:
        problem = error.strerror or error
        raise ValueError(f"there is no run in {directory}: {problem}") from None
    if content.get("kind") != kind:
        raise ValueError(
            f"{directory} holds a run of another way of learning: give another "
            "--run-dir"
        )
    values = {name: content[name] for name in content if name not in _KEPT_BESIDE}
    # The newest length, also where a run that was given it was killed.
    with contextlib.suppress(ValueError):
        unit, number = read_plan(directory).length
        values |= {"minutes": None, "iterations": None, unit: number}
    try:
        return record_from_json(config_class, values | {"run_dir": str(directory)})
    except ValueError as error:
        raise ValueError(
            f"the settings in {directory} cannot be used: {error}"
        ) from None


def repeated_config(directory: str | os.PathLike[str], **changes: Any) -> TrainConfig:
    """Returns the settings with which a run is made again, iteration by iteration.

    Args:
        directory: of the run whose settings and whose plan are followed.
        **changes: fields of `TrainConfig` that differ, first of all `run_dir`.

    Raises:
        ValueError: there is no run, or no plan to follow, or its length is changed.
    """
    if any(changes.get(name) is not None for name in ("minutes", "iterations")):
        raise ValueError(
            f"a run that is made by the plan of {directory} has the length of that "
            "plan: give it another one when it goes on, without the plan"
        )
    _, end = plan_to_follow(as_directory(directory))
    length = {"minutes": None, "iterations": end, "plan": str(directory)}
    changes = {"run_dir": None, **changes, **length}
    return dataclasses.replace(load_config(directory), **changes)
