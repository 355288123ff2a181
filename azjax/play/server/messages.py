"""Client messages: JSON objects `{"id", "method", "params"}`, parsed and checked."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from azjax.checks import is_int

MAX_ID = 2**53 - 1  # the largest integer that JavaScript represents exactly
MAX_SHOWN = 60  # characters of a wrong value
MAX_TEXT = 60_000  # characters of a game


class MessageError(ValueError):
    """A malformed message.

    id: its number, None if it has none.
    """

    def __init__(self, text: str, id: int | None = None):
        super().__init__(text)
        self.id = id


class StartRequest(NamedTuple):
    """Starts a game against a player."""

    id: int
    game: str
    player: str


class PositionRequest(NamedTuple):
    """Asks for the position after some actions."""

    id: int
    actions: tuple[int, ...]


class ReplayRequest(NamedTuple):
    """Asks for the notation of all actions of a game."""

    id: int
    actions: tuple[int, ...]


class DecisionRequest(NamedTuple):
    """Asks for the player's move after some actions.

    simulations: simulations of the search; None for the player's default.
    tree: whether the answer includes the search tree.
    """

    id: int
    actions: tuple[int, ...]
    simulations: int | None
    tree: bool = False


class ParseRequest(NamedTuple):
    """Asks for the action that a text names after some actions."""

    id: int
    actions: tuple[int, ...]
    text: str


class ReadRequest(NamedTuple):
    """Asks for the actions of a game that is given as text."""

    id: int
    text: str


class ReviewRequest(NamedTuple):
    """Asks for a player's opinion of each move of a game."""

    id: int
    actions: tuple[int, ...]
    player: str


class StopRequest(NamedTuple):
    """Cancels the requested decision or review."""

    id: int


Message = (
    StartRequest
    | PositionRequest
    | ReplayRequest
    | DecisionRequest
    | ParseRequest
    | ReadRequest
    | ReviewRequest
    | StopRequest
)


def parse(text: str | bytes, max_actions: int) -> Message:
    """Parses a message.

    Args:
        text: JSON.
        max_actions: largest length of a list of actions.

    Raises:
        MessageError: the message is malformed; the error may be sent to the client.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageError(f"a message must be a JSON object: {shown(text)}") from None
    if not isinstance(value, dict):
        raise MessageError(f"a message must be a JSON object: {shown(text)}")
    number = value.get("id")
    if not _is_count(number, MAX_ID):
        raise MessageError(f"id must be an integer >= 0: {shown(number)}")
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or method not in _PARSERS:
        known = ", ".join(_PARSERS)
        raise MessageError(f"unknown method {shown(method)}; known: {known}", number)
    if not isinstance(params, dict):
        raise MessageError(f"params must be an object: {shown(params)}", number)
    try:
        return _PARSERS[method](number, params, max_actions)
    except ValueError as error:
        raise MessageError(str(error), number) from None


def shown(value: object) -> str:
    """Returns the `repr` of any value, shortened to one line."""
    text = value if isinstance(value, str | bytes) else repr(value)
    text = repr(text[: MAX_SHOWN + 1])
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _decide(number: int, params: dict[str, Any], most: int) -> DecisionRequest:
    simulations = params.get("simulations")
    if simulations is not None and not _is_count(simulations, MAX_ID):
        raise ValueError(f"simulations must be an integer: {shown(simulations)}")
    tree = params.get("tree", False)
    if not isinstance(tree, bool):
        raise ValueError(f"tree must be true or false: {shown(tree)}")
    return DecisionRequest(number, _actions(params, most), simulations, tree)


# By method: the message of an id, its parameters and the largest number of actions.
_PARSERS: Mapping[str, Callable[[int, dict[str, Any], int], Message]] = {
    "start": lambda id, params, _: StartRequest(
        id, _text(params, "game"), _text(params, "player")
    ),
    "position": lambda id, params, most: PositionRequest(id, _actions(params, most)),
    "replay": lambda id, params, most: ReplayRequest(id, _actions(params, most)),
    "decide": _decide,
    "parse": lambda id, params, most: ParseRequest(
        id, _actions(params, most), _text(params, "text", MAX_SHOWN)
    ),
    "read": lambda id, params, _: ReadRequest(id, _text(params, "text")),
    "review": lambda id, params, most: ReviewRequest(
        id, _actions(params, most), _text(params, "player")
    ),
    "stop": lambda id, params, _: StopRequest(id),
}


def _text(params: dict[str, Any], name: str, most: int = MAX_TEXT) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string: {shown(value)}")
    if len(value) > most:
        raise ValueError(f"{name} must have at most {most} characters: {shown(value)}")
    return value


def _actions(params: dict[str, Any], most: int) -> tuple[int, ...]:
    actions = params.get("actions")
    if not isinstance(actions, list):
        raise ValueError(f"actions must be a list: {shown(actions)}")
    if len(actions) > most:
        raise ValueError(f"actions must have at most {most} entries: {len(actions)}")
    for action in actions:
        if not _is_count(action, MAX_ID):
            raise ValueError(f"an action must be an integer >= 0: {shown(action)}")
    return tuple(actions)


def _is_count(value: object, most: int) -> TypeGuard[int]:
    return is_int(value) and 0 <= value <= most
