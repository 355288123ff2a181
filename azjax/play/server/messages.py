"""Client messages: JSON objects `{"id", "method", "params"}`, parsed and checked.

The actions of a message are the moves of a game: in games with chance, the number A + k
for outcome k of chance is one of them.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

from azjax.settings import is_int

MAX_ID = 2**53 - 1  # the largest integer that JavaScript represents exactly
MAX_SHOWN = 60  # characters of a wrong value
MAX_TEXT = 60_000  # characters of a game
MAX_SETUP = 120  # characters of a FEN, which the cache of positions keeps


class MessageError(ValueError):
    """A malformed message.

    id: its number, None if it has none.
    """

    def __init__(self, text: str, id: int | None = None):
        super().__init__(text)
        self.id = id


class StartRequest(NamedTuple):
    """Starts a game against a player.

    setup: FEN of the first position; empty for the game's own.
    """

    id: int
    game: str
    player: str
    setup: str = ""


class PositionRequest(NamedTuple):
    """Asks for the position after some actions."""

    id: int
    actions: tuple[int, ...]


class RollRequest(NamedTuple):
    """Asks the server to draw an outcome of chance after some actions, and for the
    position after it."""

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
    | RollRequest
    | ReplayRequest
    | DecisionRequest
    | ParseRequest
    | ReadRequest
    | ReviewRequest
    | StopRequest
)
# By method; the fields after `id` are its parameters.
_REQUESTS: Mapping[str, Any] = {
    "start": StartRequest,
    "position": PositionRequest,
    "roll": RollRequest,
    "replay": ReplayRequest,
    "decide": DecisionRequest,
    "parse": ParseRequest,
    "read": ReadRequest,
    "review": ReviewRequest,
    "stop": StopRequest,
}


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
    if not isinstance(method, str) or method not in _REQUESTS:
        known = ", ".join(_REQUESTS)
        raise MessageError(f"unknown method {shown(method)}; known: {known}", number)
    if not isinstance(params, dict):
        raise MessageError(f"params must be an object: {shown(params)}", number)
    request = _REQUESTS[method]
    max_text = MAX_SHOWN if request is ParseRequest else MAX_TEXT
    params = {**request._field_defaults, **params}
    try:
        return request(
            number,
            *(
                _field(name, params.get(name), max_actions, max_text)
                for name in request._fields[1:]
            ),
        )
    except ValueError as error:
        raise MessageError(str(error), number) from None


def shown(value: object) -> str:
    """Returns the `repr` of any value, shortened to one line."""
    text = value if isinstance(value, str | bytes) else repr(value)
    text = repr(text[: MAX_SHOWN + 1])
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _field(name: str, value: Any, max_actions: int, max_text: int) -> Any:
    """Returns the checked value of a field of any message."""
    match name:
        case "actions":
            if not isinstance(value, list):
                raise ValueError(f"actions must be a list: {shown(value)}")
            if len(value) > max_actions:
                most = f"at most {max_actions} entries"
                raise ValueError(f"actions must have {most}: {len(value)}")
            for action in value:
                if not _is_count(action, MAX_ID):
                    text = shown(action)
                    raise ValueError(f"an action must be an integer >= 0: {text}")
            return tuple(value)
        case "simulations":
            if value is not None and not _is_count(value, MAX_ID):
                raise ValueError(f"simulations must be an integer: {shown(value)}")
        case "tree":
            if not isinstance(value, bool):
                raise ValueError(f"tree must be true or false: {shown(value)}")
        case _:
            if not isinstance(value, str):
                raise ValueError(f"{name} must be a string: {shown(value)}")
            max_text = MAX_SETUP if name == "setup" else max_text
            if len(value) > max_text:
                most = f"at most {max_text} characters"
                raise ValueError(f"{name} must have {most}: {shown(value)}")
    return value


def _is_count(value: object, most: int) -> TypeGuard[int]:
    return is_int(value) and 0 <= value <= most
