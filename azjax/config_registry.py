"""Settings as JSON of any origin: dataclasses, and registries of them by name."""

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

from azjax.checks import check_choice, did_you_mean, quoted

C = TypeVar("C")
T = TypeVar("T")
K = TypeVar("K", bound=type)


class ConfigRegistry(Generic[C]):
    """The registered classes of one kind of settings.

    Args:
        base: the base class of the settings.
        noun: the kind in messages, such as `trunk`.
        key: the field of a settings' JSON object that holds the name.
    """

    def __init__(self, base: type[C], noun: str, key: str):
        self._base, self._noun, self._key = base, noun, key
        self._classes: dict[str, type[C]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names."""
        return tuple(self._classes)

    def register(self, name: str) -> Callable[[K], K]:
        """Returns a decorator that registers a frozen dataclass.

        A class that is defined again, for example by running a notebook cell twice,
        replaces the old one.

        Args:
            name: lower-case letters, digits and underscores.

        Raises:
            ValueError: the name is taken or not allowed, or the class is not a frozen
                dataclass of the base class.
        """

        def register(kind: K) -> K:
            if not re.fullmatch("[a-z][a-z0-9_]*", name):
                raise ValueError(
                    f"the name of a {self._noun} must be like my_name: {name!r}"
                )
            params = vars(kind).get("__dataclass_params__")
            if not (params and params.frozen and issubclass(kind, self._base)):
                raise ValueError(
                    f"{kind} must be a frozen dataclass and a {self._base.__name__}"
                )
            fields = vars(kind)["__dataclass_fields__"]
            if inspect.isabstract(kind) or self._key in fields:
                raise ValueError(
                    f"{kind} must define all methods of {self._base.__name__}, and no "
                    f"field named {self._key}"
                )
            old = self._classes.get(name, kind)
            if _qualified_name(old) != _qualified_name(kind):
                raise ValueError(f"{self._noun} {name!r} is already registered: {old}")
            self._classes[name] = kind
            return kind

        return register

    def name_of(self, config: C) -> str:
        """Returns the name of a settings object's class."""
        for name, kind in self._classes.items():
            if type(config) is kind:
                return name
        raise ValueError(f"{type(config)} is not a registered {self._noun}")

    def find(self, name: object) -> type[C]:
        """Returns the class of a name."""
        if not isinstance(name, str) or name not in self._classes:
            close = did_you_mean(name, self._classes) if isinstance(name, str) else ""
            raise ValueError(
                f"unknown {self._noun} {str(name)[:40]!r}; known {self._noun}s "
                f"are {', '.join(self._classes)}; import the module of a custom "
                f"{self._noun} first{close}"
            )
        return self._classes[name]

    def to_json(self, config: C) -> dict[str, Any]:
        """Returns the name and the settings as `json.dumps` takes them."""
        settings = dataclasses.asdict(config)  # pyright: ignore
        return {self._key: self.name_of(config), **settings}

    def from_json(self, values: object, prefix: str) -> C:
        """Returns the settings in a JSON object of any origin."""
        settings = checked_object(values, prefix)
        kind = self.find(settings.pop(self._key, None))
        return record_from_json(kind, settings, prefix)


def _qualified_name(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


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
