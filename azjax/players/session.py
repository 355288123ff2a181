"""A player bound to one game: compiled, a subprocess or a person.

Compiled players choose moves for batches of positions (`azjax.players.core`). External
players, a person or another program, play one game at a time and take its moves as a
list. A session is the common interface of both: a game that is played on the host has
one session for each side.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from azjax.devices import jit_network
from azjax.games import Game, State
from azjax.games.host import legal_actions
from azjax.players.analysis import Analysis
from azjax.players.core import Choice, Player, choose_with_carry, init_carry


class ForfeitError(Exception):
    """The player cannot continue: it died, timed out or broke the rules.

    The message is the reason. The player loses the game.
    """


class ResignError(ForfeitError):
    """The player resigns. It loses the game, but this is not a fault."""


class MoveDecision(NamedTuple):
    """A player's move in one position, with its evaluation.

    action: the move.
    policy: `[A]` float32; the player's move probabilities, or None.
    value: expected result for the player to move, in [-1, 1], or None.
    analysis: search statistics without the batch axis, or None.
    draw: probability of a draw, or None.
    """

    action: int
    policy: np.ndarray | None = None
    value: float | None = None
    analysis: Analysis | None = None
    draw: float | None = None


def to_move_decision(choice: Choice, analysis: Analysis | None) -> MoveDecision:
    """Converts the choice in one position, without the batch axis, to NumPy."""
    return MoveDecision(
        int(choice.action),
        np.asarray(choice.policy),
        float(choice.value),
        analysis,
        None if choice.draw is None else float(choice.draw),
    )


class PlayerSession(Protocol):
    """A player bound to one game.

    A session is not thread-safe. It accepts only positions of its game; moves may be
    undone between two calls.
    """

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move.

        Args:
            state: the position; not terminated.
            moves: the actions from the initial position to `state`.

        Raises:
            ForfeitError: the player cannot continue.
        """
        ...

    def close(self) -> None:
        """Releases the session's resources; called once, at the end of the game."""
        ...


@runtime_checkable
class ExternalPlayer(Protocol):
    """A player that cannot be compiled."""

    def start_session(self, game: Game, seed: int) -> PlayerSession:
        """Starts a session for a new game.

        Args:
            game: the game.
            seed: seed of the player's random choices, if any.

        Raises:
            ForfeitError: the player does not start.
            ValueError: the player does not support this game.
        """
        ...


AnyPlayer = Player | ExternalPlayer


def start_session(player: AnyPlayer, game: Game, seed: int) -> PlayerSession:
    """Starts a session of any player for a new game.

    Raises:
        ForfeitError: an external program does not start.
        ValueError: the player does not support this game.
    """
    if isinstance(player, ExternalPlayer):
        return player.start_session(game, seed)
    return _CompiledSession(player, game, seed)


def choose_legal(
    session: PlayerSession, game: Game, state: State, moves: Sequence[int]
) -> MoveDecision:
    """Returns the session's decision after checking that its action is legal.

    Raises:
        ForfeitError: the action is illegal, or the player cannot continue.
    """
    decision = session.choose(state, moves)
    action = decision.action
    if not 0 <= action < game.num_actions:
        raise ForfeitError(f"illegal move: there is no action {action}")
    if action not in legal_actions(game, state):
        raise ForfeitError(f"illegal move {game.action_to_text(state, action)}")
    return decision


def compile_choice(player: Player, game: Game) -> None:
    """Compiles the function that a session of the player calls for each move."""
    _CompiledSession(player, game, seed=0).compile(game.init())


class _CompiledSession:
    """A compiled player in one game, with its carry."""

    def __init__(self, player: Player, game: Game, seed: int):
        self._player = player
        self._rng_key = jax.random.key(seed)
        self._carry = init_carry(player, _batch_of_one(game.init()))

    def choose(self, state: State, moves: Sequence[int]) -> MoveDecision:
        """Chooses a move."""
        del moves
        self._rng_key, rng_key = jax.random.split(self._rng_key)
        choice, analysis, self._carry = _analyze(
            type(self._player),
            self._player,
            rng_key,
            _batch_of_one(state),
            self._carry,
        )
        choice, analysis = jax.tree.map(
            lambda leaf: np.asarray(leaf)[0], (choice, analysis)
        )
        return to_move_decision(choice, analysis)

    def compile(self, state: State) -> None:
        """Compiles the function that `choose` calls."""
        _analyze.lower(
            type(self._player),
            self._player,
            self._rng_key,
            _batch_of_one(state),
            self._carry,
        ).compile()

    def close(self) -> None:
        """Releases the carry."""
        self._carry = None


# The type is static, as in `azjax.players.core`.
@functools.partial(jit_network, static_argnums=0)
def _analyze(
    player_type: type, player: Player, rng_key: jax.Array, states: State, carry: Any
) -> tuple[Choice, Analysis | None, Any]:
    """Calls `analyze` of a player that searches, else `choose_with_carry`."""
    del player_type
    if hasattr(player, "analyze"):
        return player.analyze(rng_key, states, carry)  # pyright: ignore
    choice, carry = choose_with_carry(player, rng_key, states, carry)
    return choice, None, carry


def _batch_of_one(state: State) -> State:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
