"""What happens in a game that is conducted, for those who observe it."""

from collections.abc import Callable
from typing import NamedTuple

from azjax.players import MoveDecision


class Move(NamedTuple):
    """A move that was made.

    action: what was played.
    text: the same in the game's notation.
    thought: what the seat that made it thought, None of a person or a loaded game.
    seconds: how long it took.
    """

    action: int
    text: str
    decision: MoveDecision | None = None
    seconds: float = 0.0


class Moved(NamedTuple):
    """A move was made by `player`."""

    player: int
    move: Move


class Jumped(NamedTuple):
    """The position is another, or others play: moves were taken back or gone forward,
    a game was begun or loaded, sides were changed."""


class Thinks(NamedTuple):
    """A seat was asked for the move of `player`, or for its advice."""

    player: int
    is_advice: bool


class Advised(NamedTuple):
    """A seat said what it would play in the position."""

    decision: MoveDecision


class AdviceFailed(NamedTuple):
    """The seat that was asked for its advice cannot go on."""

    reason: str


class Forfeited(NamedTuple):
    """The seat of `player` cannot go on, or resigns; `GameOver` follows."""

    player: int
    reason: str
    is_resignation: bool = False


class GameOver(NamedTuple):
    """The game ended; `rewards` are the results of both players, as the game counts."""

    rewards: tuple[float, float]


Event = Moved | Jumped | Thinks | Advised | AdviceFailed | Forfeited | GameOver
Observer = Callable[[Event], None]
