"""Connect Four: seven columns, six rows, four in a row wins."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, rendering
from azjax.games.core import Game, select
from azjax.games.registry import register
from azjax.games.stones import cells_in_lines
from azjax.games.symmetry import Symmetry, identity

HEIGHT, WIDTH = 6, 7
LINE_LENGTH = 4
# Eight bits a column, the bottom cell lowest: four columns fill a word, and two empty
# bits above each column keep lines from running over into the next.
COLUMN_BITS = 8
# Bit of each cell, top row first as a board is drawn.
CELLS = np.arange(HEIGHT)[::-1, None] + COLUMN_BITS * np.arange(WIDTH)[None, :]
NUM_BITS = COLUMN_BITS * WIDTH
FULL_BOARD = bitboard.constant(CELLS, NUM_BITS)
DIRECTIONS = (1, COLUMN_BITS, COLUMN_BITS - 1, COLUMN_BITS + 1)


# A status: the player to move in bit 0, and how the game ended in the bits above.
DRAWN, WON_BY_FIRST, WON_BY_SECOND = 1 << 1, 2 << 1, 3 << 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A Connect Four position, 17 bytes.

    stones: the bitboards of the player to move and of the opponent, two `[]` uint32
        words each.
    status: `[]` uint8; the player to move and the result in one number, which is a
        fifth faster on a CPU than an array for each.
    """

    stones: tuple[bitboard.Board, bitboard.Board]
    status: jax.Array

    @property
    def current_player(self) -> jax.Array:
        """`[]` int8; the player to move, 0 moves first."""
        return (self.status & 1).astype(jnp.int8)

    @property
    def terminated(self) -> jax.Array:
        """`[]` bool."""
        return self.status >= DRAWN


@register
class ConnectFour(Game[State]):
    """Connect Four by the rules of the boxed game (Milton Bradley, 1974).

    Action `a` drops a disc into column `a`, counted from the left. The first to have
    four discs in a row, column or diagonal wins; a full board is a draw.
    """

    name: ClassVar[str] = "connect_four"
    line_length = LINE_LENGTH
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
        return State(stones=(no_stones, no_stones), status=jnp.uint8(0))

    def step(self, state: State, action: jax.Array) -> State:
        """Drops a disc of the player to move into column `action`."""
        mine, theirs = state.stones
        occupied = bitboard.union(mine, theirs)
        disc = _drop(occupied, action)
        mine = bitboard.union(mine, disc)
        is_legal = bitboard.has_any(disc)
        wins = is_legal & bitboard.has_line(mine, LINE_LENGTH, DIRECTIONS)
        is_full = bitboard.is_equal(bitboard.union(occupied, disc), FULL_BOARD)
        mover = state.status & 1
        winner = jnp.where(wins, mover, 1 - mover)
        won = jnp.where(winner == 0, jnp.uint8(WON_BY_FIRST), jnp.uint8(WON_BY_SECOND))
        not_won = jnp.where(is_full, jnp.uint8(DRAWN), jnp.uint8(0))
        end = jnp.where(wins | ~is_legal, won, not_won)
        after = State(stones=(theirs, mine), status=(1 - mover) | end)
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[7]` bool, True for the columns that are not full."""
        return ~bitboard.cells_set(bitboard.union(*state.stones), CELLS[0])

    def observe(self, state: State) -> jax.Array:
        """Returns `[6, 7, 2]` float32: discs of the player to move, of the opponent.

        The top row comes first.
        """
        return bitboard.planes(state.stones, CELLS).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        end = state.status & ~jnp.uint8(1)
        won = (end == jnp.uint8([WON_BY_FIRST, WON_BY_SECOND])).astype(jnp.float32)
        return won - won[::-1]

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in discs on lines that can still be won."""
        mine, theirs = state.stones
        return bitboard.open_lines_lead(
            mine, theirs, FULL_BOARD, LINE_LENGTH, DIRECTIONS
        )

    def board(self, state: State) -> jax.Array:
        """Returns `[6, 7]` int8: 0 or 1 for a disc of that player, -1 where empty."""
        mine, theirs = state.stones
        stones = select(state.current_player == 1, (theirs, mine), (mine, theirs))
        return bitboard.pieces(stones, CELLS)

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
        if not 0 <= action < WIDTH:
            raise ValueError(f"action {action} of {self!r}: actions are 0 to 6")
        return str(action + 1)

    def action_cells(self, state: State, action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell into which a disc in column `action` falls."""
        rows = np.flatnonzero(np.asarray(self.board(state))[:, action] < 0)
        return ((int(rows[-1]), action),) if rows.size else ()

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell of the highest disc in column `last_action`."""
        if not 0 <= last_action < WIDTH:
            return ()
        rows = np.flatnonzero(np.asarray(self.board(state))[:, last_action] >= 0)
        return ((int(rows[0]), last_action),) if rows.size else ()

    def winning_cells(self, state: State) -> tuple[rendering.Cell, ...]:
        """Returns the cells of all lines that won."""
        return cells_in_lines(np.asarray(self.board(state)), LINE_LENGTH)

    def policies_on_board(
        self, state: State, policies: Mapping[str, np.ndarray]
    ) -> rendering.Policies:
        """Returns the probabilities of the columns."""
        return dict(policies)


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
