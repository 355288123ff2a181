"""What a visitor says: JSON objects `{"id", "method", "params"}`, read and checked."""

import json
from typing import Any, NamedTuple

from azjax.checks import is_int

MAX_ID = 2**53 - 1  # the largest whole number that JavaScript is sure of
MAX_SHOWN = 60  # characters of what was wrong


class MessageError(ValueError):
    """A message that cannot be understood.

    id: its number, as far as it has one.
    """

    def __init__(self, text: str, id: int | None = None):
        super().__init__(text)
        self.id = id


class Start(NamedTuple):
    """Which player of which game the visitor wants to meet."""

    id: int
    game: str
    player: str


class AskPosition(NamedTuple):
    """Which position the visitor wants to see, by the actions that lead there."""

    id: int
    actions: tuple[int, ...]


class AskMoves(NamedTuple):
    """Of which game the visitor wants to know the moves, by their actions."""

    id: int
    actions: tuple[int, ...]


class AskDecision(NamedTuple):
    """Which position the player is to think about.

    simulations: how many; None for the player's own number.
    tree: whether the visitor wants to see the tree at the end.
    """

    id: int
    actions: tuple[int, ...]
    simulations: int | None
    tree: bool = False


class AskMove(NamedTuple):
    """Which action a text means in the position after these actions."""

    id: int
    actions: tuple[int, ...]
    text: str


class Stop(NamedTuple):
    """The visitor no longer wants to know."""

    id: int


Message = Start | AskPosition | AskMoves | AskDecision | AskMove | Stop


def parse(text: str | bytes, max_actions: int) -> Message:
    """Reads a message.

    Args:
        text: as it came.
        max_actions: of a position.

    Raises:
        MessageError: it is of another form; what it says is fit to be sent back.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageError(f"a message is a JSON object: {shown(text)}") from None
    if not isinstance(value, dict):
        raise MessageError(f"a message is a JSON object: {shown(text)}")
    number = value.get("id")
    if not _is_whole(number, MAX_ID):
        raise MessageError(f"id must be a whole number >= 0: {shown(number)}")
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or method not in _READERS:
        known = ", ".join(_READERS)
        raise MessageError(f"unknown method {shown(method)}; known: {known}", number)
    if not isinstance(params, dict):
        raise MessageError(f"params must be an object: {shown(params)}", number)
    try:
        return _READERS[method](number, params, max_actions)
    except ValueError as error:
        raise MessageError(str(error), number) from None


def shown(value: object) -> str:
    """Returns a value for a message of one line, whatever it is."""
    text = value if isinstance(value, str | bytes) else repr(value)
    text = repr(text[: MAX_SHOWN + 1])
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _start(number: int, params: dict[str, Any], _: int) -> Start:
    return Start(number, _text(params, "game"), _text(params, "player"))


def _position(number: int, params: dict[str, Any], max_actions: int) -> AskPosition:
    return AskPosition(number, _actions(params, max_actions))


def _replay(number: int, params: dict[str, Any], max_actions: int) -> AskMoves:
    return AskMoves(number, _actions(params, max_actions))


def _think(number: int, params: dict[str, Any], max_actions: int) -> AskDecision:
    simulations = params.get("simulations")
    if simulations is not None and not _is_whole(simulations, MAX_ID):
        raise ValueError(f"simulations must be a whole number: {shown(simulations)}")
    tree = params.get("tree", False)
    if not isinstance(tree, bool):
        raise ValueError(f"tree must be true or false: {shown(tree)}")
    return AskDecision(number, _actions(params, max_actions), simulations, tree)


def _read(number: int, params: dict[str, Any], max_actions: int) -> AskMove:
    text = _text(params, "text")
    if len(text) > MAX_SHOWN:
        raise ValueError(f"text must have at most {MAX_SHOWN} letters: {shown(text)}")
    return AskMove(number, _actions(params, max_actions), text)


def _stop(number: int, params: dict[str, Any], _: int) -> Stop:
    del params
    return Stop(number)


_READERS = {
    "start": _start,
    "position": _position,
    "replay": _replay,
    "think": _think,
    "read": _read,
    "stop": _stop,
}


def _text(params: dict[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text: {shown(value)}")
    return value


def _actions(params: dict[str, Any], most: int) -> tuple[int, ...]:
    actions = params.get("actions")
    if not isinstance(actions, list):
        raise ValueError(f"actions must be a list: {shown(actions)}")
    if len(actions) > most:
        raise ValueError(f"no game is longer than {most} actions: {len(actions)}")
    for action in actions:
        if not _is_whole(action, MAX_ID):
            raise ValueError(f"an action is a whole number >= 0: {shown(action)}")
    return tuple(actions)


def _is_whole(value: object, most: int) -> bool:
    return is_int(value) and 0 <= value <= most
