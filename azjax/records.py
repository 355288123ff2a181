"""Dataclasses read from JSON, which may hold anything."""

import dataclasses
import types
import typing
from typing import Any, Literal, TypeVar

T = TypeVar("T")


def record_from_json(kind: type[T], values: object, prefix: str = "") -> T:
    """Returns a dataclass from what `json.loads` made of `dataclasses.asdict`.

    Args:
        kind: the dataclass; its fields are numbers, texts, None, tuples of them, or
            dataclasses. Missing fields have their defaults. A field whose class has a
            static method `from_json(values, prefix)` is read by it.
        values: anything.
        prefix: of the names of the fields in errors, with a dot at its end.

    Raises:
        ValueError: a field is unknown or missing, or its value is of another type or
            not allowed.
    """
    hints = typing.get_type_hints(kind)
    values = checked_object(values, prefix)
    unknown = [name for name in values if name not in hints]
    if unknown:
        raise ValueError(f"there is no setting {prefix}{unknown[0][:40]}")
    try:
        return kind(
            **{
                name: _value(hints[name], value, f"{prefix}{name}")
                for name, value in values.items()
            }
        )
    except TypeError as error:  # a field without a default is missing
        raise ValueError(f"{prefix or 'the settings: '}{error}") from None


def checked_object(values: object, prefix: str) -> dict[str, Any]:
    """Returns what must be a JSON object.

    Raises:
        ValueError: it is no object.
    """
    if not isinstance(values, dict):
        name = prefix.rstrip(".") or "the settings"
        raise ValueError(f"{name} must be an object: {_short(values)}")
    return {str(name): value for name, value in values.items()}


def _value(hint: Any, value: Any, name: str) -> Any:
    if hasattr(hint, "from_json"):
        return hint.from_json(value, f"{name}.")
    if dataclasses.is_dataclass(hint):
        return record_from_json(typing.cast(type, hint), value, f"{name}.")
    for option in _options(hint):
        if typing.get_origin(option) is tuple and isinstance(value, list):
            item_hint = typing.get_args(option)[0]
            return tuple(_value(item_hint, item, name) for item in value)
    if not any(_is(option, value) for option in _options(hint)):
        raise ValueError(f"{name} is of another type: {_short(value)}")
    return value


def _options(hint: Any) -> tuple[Any, ...]:
    """Returns the types that a union allows, or the only one."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _is(hint: Any, value: Any) -> bool:
    """Returns whether a value from JSON is of a type, which is no union."""
    if typing.get_origin(hint) is Literal:
        return type(value) is str and value in typing.get_args(hint)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _short(value: object) -> str:
    return repr(value)[:80]
