"""Connect Four: seven columns, six rows, four in a row wins."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import bitboard, rendering
from azjax.games.core import Game, register, select, zero_sum
from azjax.games.symmetry import Symmetry, identity

HEIGHT, WIDTH = 6, 7
# Eight bits a column, the bottom cell lowest: four columns fill a word, and two empty
# bits above each column keep lines from running over into the next.
COLUMN_BITS = 8
# Bit of each cell, top row first as a board is drawn.
CELLS = np.arange(HEIGHT)[::-1, None] + COLUMN_BITS * np.arange(WIDTH)[None, :]
NUM_BITS = COLUMN_BITS * WIDTH
FULL_BOARD = bitboard.constant(CELLS, NUM_BITS)
DIRECTIONS = (1, COLUMN_BITS, COLUMN_BITS - 1, COLUMN_BITS + 1)


@struct.dataclass
class State:
    """A Connect Four position, 19 bytes.

    stones: the bitboards of players 0 and 1, two `[]` uint32 words each.
    current_player: `[]` int8; the player to move, 0 moves first.
    outcome: `[]` int8; +1, 0, -1 for player 0 once `terminated`, 0 before.
    terminated: `[]` bool.
    """

    stones: tuple[bitboard.Board, bitboard.Board]
    current_player: jax.Array
    outcome: jax.Array
    terminated: jax.Array


@register
class ConnectFour(Game[State]):
    """Connect Four by the rules of the boxed game (Milton Bradley, 1974).

    Action `a` drops a disc into column `a`, counted from the left. The first to have
    four discs in a row, column or diagonal wins; a full board is a draw.
    """

    name: ClassVar[str] = "connect_four"
    num_actions = WIDTH
    observation_shape = (HEIGHT, WIDTH, 2)
    max_moves = HEIGHT * WIDTH
    style = rendering.DISCS

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The identity and the mirror image."""
        mirror = Symmetry(
            lambda observation: jnp.flip(observation, axis=-2),
            np.arange(WIDTH)[::-1].copy(),
        )
        return (identity(WIDTH), mirror)

    def init(self) -> State:
        """Returns the empty board."""
        no_stones = bitboard.empty(NUM_BITS)
        return State(
            stones=(no_stones, no_stones),
            current_player=jnp.int8(0),
            outcome=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Drops a disc of the player to move into column `action`."""
        first, second = state.stones
        second_to_move = state.current_player == 1
        occupied = bitboard.union(first, second)
        disc = _drop(occupied, action)
        mine = bitboard.union(select(second_to_move, second, first), disc)
        is_legal = bitboard.has_any(disc)
        wins = bitboard.has_line(mine, 4, DIRECTIONS)
        is_full = bitboard.is_equal(bitboard.union(occupied, disc), FULL_BOARD)
        mover_result = jnp.where(is_legal, wins.astype(jnp.int8), jnp.int8(-1))
        after = State(
            stones=select(second_to_move, (first, mine), (mine, second)),
            current_player=jnp.int8(1) - state.current_player,
            outcome=jnp.where(second_to_move, -mover_result, mover_result),
            terminated=~is_legal | wins | is_full,
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[7]` bool, True for the columns that are not full."""
        return ~bitboard.cells_set(bitboard.union(*state.stones), CELLS[0])

    def observe(self, state: State) -> jax.Array:
        """Returns `[6, 7, 2]` float32: discs of the player to move, of the opponent.

        The top row comes first.
        """
        first, second = state.stones
        stones = select(state.current_player == 1, (second, first), (first, second))
        return bitboard.planes(stones, CELLS).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def board(self, state: State) -> jax.Array:
        """Returns `[6, 7]` int8: 0 or 1 for a disc of that player, -1 where empty."""
        return bitboard.pieces(state.stones, CELLS)

    @property
    def column_labels(self) -> Sequence[str]:
        """`1` to `7` from the left."""
        return [str(column + 1) for column in range(WIDTH)]

    @property
    def row_labels(self) -> Sequence[str]:
        """None: a column is all that a player chooses."""
        return ()

    def action_to_text(self, state: State, action: int) -> str:
        """Returns the column's number, `1` to `7` from the left."""
        return str(action + 1)

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell of the highest disc in column `last_action`."""
        rows = np.flatnonzero(np.asarray(self.board(state))[:, last_action] >= 0)
        return ((int(rows[0]), last_action),) if rows.size else ()

    def _policies_on_board(
        self, state: State, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        return {name: np.asarray(policy) for name, policy in policies.items()}


def _drop(occupied: bitboard.Board, action: jax.Array) -> bitboard.Board:
    """Returns the disc that falls into column `action`: no bit where the column is full
    or there is no such column."""
    column = jnp.asarray(action).astype(jnp.uint32)
    word_of_column = jnp.where(column < WIDTH, column // 4, len(occupied))
    bottom = jnp.uint32(1) << (COLUMN_BITS * (column % 4))
    cells = bottom * jnp.uint32((1 << HEIGHT) - 1)
    # Adding the column's bottom bit carries up to its lowest empty cell.
    return tuple(
        jnp.where(word_of_column == index, (word + bottom) & cells, jnp.uint32(0))
        for index, word in enumerate(occupied)
    )
