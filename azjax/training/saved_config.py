"""The settings of a run, as its directory keeps them."""

import dataclasses
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar

from azjax.training.config import TrainConfig
from azjax.training.plan import read_plan
from azjax.training.run_directory import read_config

T = TypeVar("T")
_KEPT_BESIDE = ("format", "optimizer", "hooks")  # in the file, and no settings


def load_config(directory: str | Path) -> TrainConfig:
    """Returns the settings of a run of AlphaZero, with which it goes on.

    Args:
        directory: the run's; it may have been moved, or come from somewhere else.

    Raises:
        ValueError: there is no run, it cannot be read, or its settings are not allowed.
    """
    directory = Path(directory)
    try:
        content = read_config(directory)
    except OSError as error:
        raise ValueError(f"there is no run in {directory}: {error}") from None
    values = {name: content[name] for name in content if name not in _KEPT_BESIDE}
    try:
        return record_from_json(TrainConfig, values | {"run_dir": str(directory)})
    except ValueError as error:
        raise ValueError(
            f"the settings in {directory} cannot be used: {error}"
        ) from None


def repeated_config(directory: str | Path, **changes: Any) -> TrainConfig:
    """Returns the settings with which a run is made again, iteration by iteration.

    Args:
        directory: of the run whose settings and whose plan are followed.
        **changes: fields of `TrainConfig` that differ, first of all `run_dir`.

    Raises:
        ValueError: there is no run, or no plan to follow.
    """
    plan = read_plan(Path(directory))
    length = {"minutes": None, "iterations": plan.end, "plan": str(directory)}
    changes = {"run_dir": None, **changes}
    return dataclasses.replace(load_config(directory), **length, **changes)


def record_from_json(kind: type[T], values: object, prefix: str = "") -> T:
    """Returns a dataclass from what `json.loads` made of `dataclasses.asdict`.

    Args:
        kind: the dataclass; its fields are numbers, texts, None, tuples of them, or
            such dataclasses. What is missing has its default.
        values: anything.
        prefix: of the names of the fields in errors.

    Raises:
        ValueError: a field is unknown, or its value is of another type or not allowed.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{prefix.rstrip('.')} must be an object: {_short(values)}")
    hints = typing.get_type_hints(kind)
    unknown = [str(name) for name in values if name not in hints]
    if unknown:
        raise ValueError(f"there is no setting {prefix}{unknown[0][:40]}")
    return kind(
        **{
            name: _value(hints[name], value, f"{prefix}{name}")
            for name, value in values.items()
        }
    )


def _value(hint: Any, value: Any, name: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return record_from_json(typing.cast(type, hint), value, f"{name}.")
    if typing.get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_value(typing.get_args(hint)[0], item, name) for item in value)
    if not _is(hint, value):
        raise ValueError(f"{name} is of another type: {_short(value)}")
    return value


def _is(hint: Any, value: Any) -> bool:
    """Returns whether a value from JSON is of a type."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is(option, value) for option in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return type(value) is str and value in typing.get_args(hint)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _short(value: object) -> str:
    return repr(value)[:80]
