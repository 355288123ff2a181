"""The registry of games and the parser of game names."""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from azjax.games.contract import check_types
from azjax.games.core import Game
from azjax.text import did_you_mean, quoted

G = TypeVar("G", bound=Game)


class UnknownGameError(ValueError):
    """There is no game of this name.

    name: the name.
    """

    def __init__(self, name: str):
        self.name = name
        close = did_you_mean(name, _GAMES)
        super().__init__(
            f"unknown game {quoted(name)}; known games: {', '.join(available())}; for "
            f"a game of your own, run the file that defines it, as `python FILE`, in "
            f"place of `azjax`{close}"
        )


_GAMES: dict[str, type[Game]] = {}
_TESTED: set[type[Game]] = set()  # by `make`

# Modules that register games of other libraries; imported on first use.
_ADAPTERS = {"pgx": "azjax.games.adapters.pgx"}


def register(game_class: type[G]) -> type[G]:
    """Registers a game class for `make`; usable as a class decorator.

    A class that is defined again, for example by running a notebook cell twice,
    replaces the old one.
    """
    known = _GAMES.get(game_class.name, game_class)
    if _place(known) != _place(game_class):
        raise ValueError(
            f"a game named {game_class.name!r} is already registered: {known}"
        )
    _GAMES[game_class.name] = game_class
    return game_class


def _place(game_class: type[Game]) -> tuple[str, str]:
    """Returns where a class is defined."""
    return game_class.__module__, game_class.__qualname__


def available() -> tuple[str, ...]:
    """Returns the sorted names of the registered games, without those of other
    libraries (`pgx:ID`)."""
    return tuple(sorted(_GAMES.keys() - _ADAPTERS.keys()))


def game_options(name: str) -> Mapping[str, inspect.Parameter]:
    """Returns the options of a registered game by name, in constructor order.

    Example:
        >>> {name: option.default for name, option in games.game_options("hex").items()}
        {'size': 11, 'swap': False}
    """
    return inspect.signature(find_class(name)).parameters


def make(spec: str, **options: Any) -> Game:
    """Builds a game by name.

    Options follow a colon, separated by commas, by position or by name; `repr` of a
    game returns the shortest such text.

    Args:
        spec: a name from `available()`, optionally with options.
        **options: arguments of the game's constructor; numbers may be NumPy's.

    Raises:
        TypeError: `spec` is not a string.
        UnknownGameError: there is no such game.
        ContractError: methods of a game outside azjax return wrong types, which is
            tested once for each class.
        ValueError: an option is unknown or has an invalid value.

    Example:
        >>> games.make("go", size=5) == games.make("go:size=5") == games.make("go:5")
        True
        >>> games.make("go:5", komi=6.5)
        go:5,komi=6.5
    """
    if not isinstance(spec, str):  # in a damaged file
        raise TypeError(f"a game must be a string: {quoted(spec)}")
    name, _, text = spec.partition(":")
    game_class = find_class(name)
    parameters = list(game_options(name))
    parts = text.split(",") if text else []
    if "" in parts:
        raise ValueError(
            f"an option in {quoted(spec)} is empty; to leave some out, give others by "
            "name"
        )
    for position, part in enumerate(parts):
        key, equals, value = part.rpartition("=")
        if not equals:
            if position >= len(parameters):
                raise ValueError(_unknown_option(name, part, parameters))
            key = parameters[position]
        if key in options:
            raise ValueError(f"option {quoted(key)} of {name} is given twice")
        options[key] = _parse_value(value)
    for key in options:
        if key not in parameters:
            raise ValueError(_unknown_option(name, key, parameters))
    plain = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in options.items()
    }
    game = game_class(**plain)
    if game_class not in _TESTED and not game_class.__module__.startswith("azjax."):
        check_types(game)
        _TESTED.add(game_class)
    return game


def game_title(spec: str) -> str:
    """Returns the title of a game, for people.

    Example:
        >>> games.game_title("go:5,komi=0.5")
        'Go 5x5 (komi 0.5)'
    """
    name, _, text = spec.partition(":")
    title = name.replace("_", " ").title()
    try:
        parameters = list(game_options(name))
    except ValueError:  # the game is not registered in this process
        parameters = []
    options = {}
    for position, part in enumerate(text.split(",") if text else []):
        key, equals, value = part.rpartition("=")
        if not equals:
            is_known = position < len(parameters)
            key, value = (parameters[position], part) if is_known else (part, "True")
        options[key] = value
    for sides in (("size", "size"), ("width", "height")):
        if options.keys() >= set(sides):
            title = f"{title} {'x'.join(options[side] for side in sides)}"
            options = {key: options[key] for key in options if key not in sides}
    if not options:
        return title
    return f"{title} ({', '.join(map(_option_title, options, options.values()))})"


def _option_title(key: str, value: str) -> str:
    name = key.replace("_", " ")
    return {"True": name, "False": f"no {name}"}.get(value, f"{name} {value}")


def find_class(name: str) -> type[Game]:
    """Returns the class of a registered game.

    Raises:
        UnknownGameError: there is no such game.
        ValueError: the library that has the game is not installed.
    """
    if name in _ADAPTERS:
        try:
            importlib.import_module(_ADAPTERS[name])
        except ModuleNotFoundError as error:
            raise ValueError(str(error)) from error
    if name not in _GAMES:
        raise UnknownGameError(name)
    return _GAMES[name]


def _unknown_option(name: str, option: str, parameters: list[str]) -> str:
    allowed = f"its options: {', '.join(parameters)}" if parameters else "it has none"
    close = did_you_mean(option, parameters)
    return f"{name} has no option {quoted(option)}; {allowed}{close}"


def _parse_value(text: str) -> int | float | str | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            pass
    return text
