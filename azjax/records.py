"""Reads dataclasses from JSON of any content."""

import dataclasses
import types
import typing
from typing import Any, Literal, TypeVar

from azjax.checks import check_choice, quoted

T = TypeVar("T")


def record_from_json(kind: type[T], values: object, prefix: str = "") -> T:
    """Returns a dataclass from parsed JSON in the form of `dataclasses.asdict`.

    Args:
        kind: the dataclass; its fields are numbers, strings, None, tuples of them, or
            dataclasses. Missing fields get their defaults. A field's class may define a
            static method `from_json(values, prefix)`.
        values: anything.
        prefix: prefix of field names in errors, with a trailing dot.

    Raises:
        ValueError: a field is unknown or missing, or its value has the wrong type or is
            not allowed.
    """
    hints = typing.get_type_hints(kind)
    hints = {field.name: hints[field.name] for field in dataclasses.fields(kind)}  # pyright: ignore
    values = checked_object(values, prefix)
    unknown = [name for name in values if name not in hints]
    if unknown:
        raise ValueError(f"unknown setting {prefix}{unknown[0][:40]}")
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
    """Returns a JSON object with string keys."""
    if not isinstance(values, dict):
        name = prefix.rstrip(".") or "the settings"
        raise ValueError(f"{name} must be an object: {quoted(values)}")
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
        if typing.get_origin(hint) is Literal:
            check_choice(name, value, typing.get_args(hint))
        raise ValueError(f"{name} has the wrong type: {quoted(value)}")
    return value


def _options(hint: Any) -> tuple[Any, ...]:
    """Returns the members of a union type, or the type itself."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _is(hint: Any, value: Any) -> bool:
    """Returns whether a JSON value has a type, which is not a union."""
    if typing.get_origin(hint) is Literal:
        return type(value) is str and value in typing.get_args(hint)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint
