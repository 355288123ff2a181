"""Settings: frozen dataclasses with the limits of each value at its field.

    @dataclasses.dataclass(frozen=True)
    class LearnerConfig(Settings):
        section: ClassVar[str] = "learner."

        batch_size: Annotated[int, Within(ge=1)] = 256
        learning_rate: Annotated[float, Within(gt=0)] = 2e-3

A value outside of its limits raises a one-line ValueError with the name, the allowed
values, and the value. `from_json` reads settings of any origin, and a `ConfigRegistry`
those whose class is given by a name.
"""

import dataclasses
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeGuard,
    TypeVar,
    get_args,
    get_origin,
)

from azjax.text import did_you_mean, quoted

MAX_INT = 2**31 - 1  # counts and sizes become int32 in JAX
FORMAT = 10  # of the settings in files; raised when released names or meanings change

C = TypeVar("C", bound="Settings")
T = TypeVar("T")
K = TypeVar("K", bound=type)


# Limits


@dataclasses.dataclass(frozen=True)
class Within:
    """Limits of a number: `Annotated[int, Within(ge=1)]`, or of each number of a tuple.

    An int is at most `MAX_INT` unless `le` says otherwise; a float is finite.

    ge: the number is at least this.
    le: it is at most this.
    gt: it is greater than this.
    lt: it is less than this.
    text: the limits in messages, if not made of the numbers.
    """

    ge: float | None = None
    le: float | None = None
    _: dataclasses.KW_ONLY
    gt: float | None = None
    lt: float | None = None
    text: str = ""

    def allows(self, value: float) -> bool:
        """Returns whether a number is within the limits."""
        return (
            abs(value) <= sys.float_info.max  # which excludes NaN
            and (self.ge is None or value >= self.ge)
            and (self.le is None or value <= self.le)
            and (self.gt is None or value > self.gt)
            and (self.lt is None or value < self.lt)
        )

    def __str__(self) -> str:
        """Returns the limits for messages: `from 0 to 1`, `> 0 and <= 1`."""
        if self.ge is not None and self.le is not None:
            return f"from {self.ge} to {self.le}"
        signs = ((">", self.gt), (">=", self.ge), ("<", self.lt), ("<=", self.le))
        return " and ".join(f"{sign} {low}" for sign, low in signs if low is not None)


@dataclasses.dataclass(frozen=True)
class Distinct:
    """No value of a tuple occurs twice: `Annotated[tuple[str, ...], Distinct()]`."""


_SEED = Within(0, 2**32 - 1, text="an int from 0 to 2**32 - 1")
Seed = Annotated[int, _SEED]
OptionalSeed = Annotated[int | None, _SEED]
Fraction = Annotated[float, Within(0, 1)]


def is_int(value: object) -> TypeGuard[int]:
    """Returns whether a value is an int; bools and NumPy integers do not count."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether a value is an int or a float; NaN counts, bools do not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check(name: str, value: object, hint: Any) -> None:
    """Checks a value of an annotated type: a number with limits, a boolean or a choice,
    or a tuple of these; None where the type allows it.

    Args:
        name: in the message.
        value: anything.
        hint: the type, for example `Seed` or `Literal["dense", "board"]`; values of
            other types are not checked.

    Raises:
        ValueError: the value is not allowed.
    """
    kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    within = next((extra for extra in extras if isinstance(extra, Within)), None)
    options = _options(kind)
    if value is None and type(None) in options:
        return
    kind = next(option for option in options if option is not type(None))
    if get_origin(kind) is tuple:
        item, values = get_args(kind)[0], typing.cast(tuple, value)
        for each in values:
            check(name, each, Annotated[item, within] if within else item)
            if Distinct() in extras and values.count(each) > 1:
                raise ValueError(f"{name} has {each!r} twice")
        return
    if kind is bool:
        is_allowed, allowed = isinstance(value, bool), "True or False"
    elif get_origin(kind) is Literal:
        choices = get_args(kind)
        is_allowed, allowed = value in choices, " or ".join(map(str, choices))
    elif within is None:
        return
    elif kind is int:
        low, high = within.ge, MAX_INT if within.le is None else within.le
        is_allowed = is_int(value) and within.allows(value) and value <= high
        allowed = within.text or f"an int from {low} to {high}"
        if high >= MAX_INT and not within.text:  # named only if it is exceeded
            is_above = is_int(value) and value > high
            allowed = f"an int >= {low}" + (f" and <= {high}" if is_above else "")
    else:
        is_allowed = is_number(value) and within.allows(value)
        is_open = within.le is None and within.lt is None
        allowed = f"a {'finite ' if is_open else ''}number {within}"
    if not is_allowed:
        raise ValueError(f"{name} must be {allowed}: {quoted(value)}")


def check_int(name: str, value: object, low: int, high: int = MAX_INT) -> None:
    """Checks an int, for example an argument of a function."""
    check(name, value, Annotated[int, Within(low, high)])


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of frozen dataclasses of settings, which checks their values; see `check`.

    section: prefix of the names in messages, such as `learner.`.
    """

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Checks the values."""
        for name, hint in field_hints(type(self)).items():
            check(f"{self.section}{name}", getattr(self, name), hint)

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values."""
        values = {name: getattr(self, name) for name in field_hints(type(self))}
        return dataclasses.asdict(self) | {
            name: value.to_json()
            for name, value in values.items()
            if isinstance(value, Settings)
        }


@functools.cache
def field_hints(kind: type) -> Mapping[str, Any]:
    """Returns the annotated types of the fields of a dataclass."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the names of nested settings, such as `learner.batch_size`, and their
    values."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


# JSON


def from_json(kind: type[T], values: object, prefix: str = "") -> T:
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
    hints = field_hints(kind)
    values = _checked_object(values, prefix)
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


def check_format(content: object) -> dict[str, Any]:
    """Returns the settings of a file, if it is a JSON object of this `FORMAT`."""
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    found = content.get("format")
    if type(found) is not int or found != FORMAT:
        raise ValueError(
            f"its format is {quoted(found, 40)}, and this version of azjax reads "
            f"format {FORMAT}"
        )
    return content


def _checked_object(values: object, prefix: str) -> dict[str, Any]:
    """Returns a JSON object with string keys."""
    if not isinstance(values, dict):
        name = prefix.rstrip(".") or "the settings"
        raise ValueError(f"{name} must be an object: {quoted(values)}")
    return {str(name): value for name, value in values.items()}


def _value(hint: Any, value: Any, name: str) -> Any:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if hasattr(hint, "from_json"):
        return hint.from_json(value, f"{name}.")
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast(type, hint), value, f"{name}.")
    options = _options(hint)
    for option in options:
        if get_origin(option) is tuple and isinstance(value, list):
            item = get_args(option)[0]
            return tuple(_value(item, each, name) for each in value)
        if get_origin(option) is Literal:
            is_one = type(value) is str and value in get_args(option)
        else:
            is_one = type(value) in ((int, float) if option is float else (option,))
        if is_one:
            return value
    if get_origin(hint) is Literal:
        check(name, value, hint)
    raise ValueError(f"{name} has the wrong type: {quoted(value)}")


def _options(hint: Any) -> tuple[Any, ...]:
    """Returns the members of a union type, or the type itself."""
    is_union = get_origin(hint) in (typing.Union, types.UnionType)
    return get_args(hint) if is_union else (hint,)


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
        """Returns a decorator that registers a frozen dataclass, so that files with its
        settings can be saved and loaded. To load one, its module must be imported.

        A class that is defined again, for example by running a notebook cell twice,
        replaces the old one.

        Args:
            name: lower-case letters, digits and underscores; of no other class.

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
            names = [(one.__module__, one.__qualname__) for one in (old, kind)]
            if names[0] != names[1]:
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
        return {self._key: self.name_of(config), **Settings.to_json(config)}

    def from_json(self, values: object, prefix: str) -> C:
        """Returns the settings in a JSON object of any origin."""
        settings = _checked_object(values, prefix)
        kind = self.find(settings.pop(self._key, None))
        return from_json(kind, settings, prefix)
