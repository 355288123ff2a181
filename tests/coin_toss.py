"""A game with chance for tests."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, stones
from azjax.games.core import select
from azjax.games.tic_tac_toe import TicTacToe

FIRST = np.array([5, 2, 0], np.float32) / 7
LATER = np.array([5, 2, 1], np.float32) / 8


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State(stones.State):
    """A position of tic-tac-toe, and `waits`, `[]` bool, whether the coin is next."""

    waits: jax.Array


class CoinToss(TicTacToe):
    """Tic-tac-toe in which a coin falls before each move: the player whose turn it is
    moves (5/8), the other one moves (2/8), or the player whose turn it is wins (1/8).

    After a move it is the turn of the player who did not make it. The first coin is
    tossed again if the player would win by it.
    """

    name: ClassVar[str] = "coin_toss"
    num_outcomes = 3

    def init(self) -> State:
        """Returns the empty board, which waits for the coin."""
        return _with(super().init(), waits=jnp.bool(True))

    def step(self, state: State, action: jax.Array) -> State:
        """Marks cell `action` for the player to move."""
        plain = stones.State(*(getattr(state, name) for name in _FIELDS))
        after = super().step(plain, action)
        return select(state.terminated, state, _with(after, waits=~after.terminated))

    def chance(self, state: State) -> jax.Array:
        """Returns `[3]` float32."""
        is_first = ~bitboard.has_any(bitboard.union(*state.stones))
        probabilities = jnp.where(is_first, FIRST, LATER)
        return jnp.where(state.waits, probabilities, 0)

    def chance_step(self, state: State, outcome: jax.Array) -> State:
        """Lets the coin fall."""
        is_first = state.current_player == 0
        other = jnp.int8(1) - state.current_player
        wins = jnp.where(is_first, jnp.int8(1), jnp.int8(-1))
        return dataclasses.replace(
            state,
            current_player=jnp.where(outcome == 1, other, state.current_player),
            outcome=jnp.where(outcome == 2, wins, state.outcome),
            terminated=outcome == 2,
            waits=jnp.bool(False),
        )

    def outcome_to_text(self, state: State, outcome: int) -> str:
        """Returns what the coin says."""
        return ["heads", "tails", "edge"][outcome]


_FIELDS = [field.name for field in dataclasses.fields(stones.State)]


def _with(state: stones.State, waits: jax.Array) -> State:
    return State(*(getattr(state, name) for name in _FIELDS), waits)
