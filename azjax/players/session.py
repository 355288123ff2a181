"""A player's seat in one game, whatever the player is: compiled, an engine, a person.

Players that are compiled choose for many games at once (`azjax.players.core`). Others,
a person or a program beside this one, know one game at a time and see it as a list of
moves. A seat is what both have in common: where one game is conducted on the host, each
side has a seat.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from azjax.games import Game, State
from azjax.players.analysis import Analysis
from azjax.players.core import Choice, Player, start, think


class ForfeitError(Exception):
    """A player cannot go on: its engine died, hung, or broke the rules.

    The message says what happened. The game counts as lost for this player.
    """


class ResignError(ForfeitError):
    """The player gives the game up, which is no fault."""


class MoveDecision(NamedTuple):
    """What a player chose in one position, and why.

    action: the move.
    policy: `[A]` float32; the player's probabilities of the moves, or None.
    value: the expected result for the player to move, in [-1, 1], or None.
    analysis: what a search saw, without the axis of positions, or None.
    draw: the probability of a draw, or None.
    """

    action: int
    policy: np.ndarray | None = None
    value: float | None = None
    analysis: Analysis | None = None
    draw: float | None = None


def to_move_decision(choice: Choice, analysis: Analysis | None) -> MoveDecision:
    """Returns a player's choice in one position, in NumPy and without the axis of
    positions, as a thought."""
    return MoveDecision(
        int(choice.action),
        np.asarray(choice.policy),
        float(choice.value),
        analysis,
        None if choice.draw is None else float(choice.draw),
    )


class PlayerSession(Protocol):
    """A player in one game.

    A seat is used by one thread at a time, and asked about positions of its game only;
    moves may be taken back in between.
    """

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move.

        Args:
            state: the position, not a finished one.
            moves: the actions that led to it from the first position.

        Raises:
            ForfeitError: the player cannot go on.
        """
        ...

    def close(self) -> None:
        """Gives back what the seat holds; called once, at the end of the game."""
        ...


@runtime_checkable
class ExternalPlayer(Protocol):
    """A player that cannot be compiled."""

    def start_session(self, game: Game, seed: int) -> PlayerSession:
        """Returns its seat in a game that begins.

        Args:
            game: what is played.
            seed: of its chance, if it has any.

        Raises:
            ForfeitError: it does not start.
            ValueError: it cannot play this game.
        """
        ...


AnyPlayer = Player | ExternalPlayer


def start_session(player: AnyPlayer, game: Game, seed: int) -> PlayerSession:
    """Returns the seat of any player in a game that begins.

    Raises:
        ForfeitError: a program beside this one does not start.
        ValueError: the player cannot play this game.
    """
    if isinstance(player, ExternalPlayer):
        return player.start_session(game, seed)
    return _CompiledSession(player, game, seed)


def compile_choice(player: Player, game: Game) -> None:
    """Compiles what the seats of a player run to choose a move, without running it."""
    _CompiledSession(player, game, seed=0).compile(game.init())


class _CompiledSession:
    """A compiled player in one game, with what it remembers of it."""

    def __init__(self, player: Player, game: Game, seed: int):
        self._player = player
        self._rng_key = jax.random.key(seed)
        self._memory = start(player, _batch_of_one(game.init()))

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move."""
        del moves
        self._rng_key, rng_key = jax.random.split(self._rng_key)
        choice, analysis, self._memory = _analyse(
            type(self._player),
            self._player,
            rng_key,
            _batch_of_one(state),
            self._memory,
        )
        choice, analysis = jax.tree.map(
            lambda leaf: np.asarray(leaf[0]), (choice, analysis)
        )
        return to_move_decision(choice, analysis)

    def compile(self, state: State) -> None:
        """Compiles what `choose` calls."""
        _analyse.lower(
            type(self._player),
            self._player,
            self._rng_key,
            _batch_of_one(state),
            self._memory,
        ).compile()

    def close(self) -> None:
        """Forgets the game."""
        self._memory = None


@jax.jit(static_argnums=0)  # the type, as in `azjax.players.core`
def _analyse(
    player_type: type, player: Player, rng_key: jax.Array, states: State, memory: Any
) -> tuple[Choice, Analysis | None, Any]:
    """Chooses as `think` does, with the analysis of a player that searches."""
    del player_type
    if hasattr(player, "analyse"):
        return player.analyse(rng_key, states, memory)  # pyright: ignore
    choice, memory = think(player, rng_key, states, memory)
    return choice, None, memory


def _batch_of_one(state: State) -> State:
    return jax.tree.map(lambda leaf: leaf[None], state)
