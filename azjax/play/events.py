"""Events of a game that a `Controller` runs, for its observers."""

from collections.abc import Callable
from typing import NamedTuple

from azjax.players import MoveDecision


class Move(NamedTuple):
    """A move of the game.

    action: the move.
    text: the move in the game's notation.
    decision: the session's decision; None for a person's move or a loaded game.
    seconds: time that the player used.
    """

    action: int
    text: str
    decision: MoveDecision | None = None
    seconds: float = 0.0


class Moved(NamedTuple):
    """`player` made a move."""

    player: int
    move: Move


class Jumped(NamedTuple):
    """The position or the sessions changed without a move.

    Moves were undone or redone, a game was started or loaded, or sides were changed.
    """


class Thinks(NamedTuple):
    """A session was asked for the move of `player`, or for advice."""

    player: int
    is_advice: bool


class Advised(NamedTuple):
    """A session gave advice for the position."""

    decision: MoveDecision


class AdviceFailed(NamedTuple):
    """The session that was asked for advice cannot continue."""

    reason: str


class Forfeited(NamedTuple):
    """The session of `player` cannot continue or resigns; `GameOver` follows."""

    player: int
    reason: str
    is_resignation: bool = False


class GameOver(NamedTuple):
    """The game is over; `rewards` are the results of players 0 and 1."""

    rewards: tuple[float, float]


Event = Moved | Jumped | Thinks | Advised | AdviceFailed | Forfeited | GameOver
Observer = Callable[[Event], None]
