"""Tic-tac-toe: three in a row on a board of nine cells."""

import functools
import operator
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, rendering
from azjax.games.core import Game, zero_sum
from azjax.games.registry import register
from azjax.games.stones import (
    State,
    after_stone,
    cells_in_lines,
    empty_board,
    own_first,
)
from azjax.games.symmetry import Symmetry, board_symmetries

SIZE = 3
CELLS = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
_ROWS = [*CELLS, *CELLS.T, CELLS.diagonal(), CELLS[:, ::-1].diagonal()]
LINES = [bitboard.constant(row, SIZE * SIZE) for row in _ROWS]
FULL_BOARD = bitboard.constant(CELLS, SIZE * SIZE)


@register
class TicTacToe(Game[State]):
    """Tic-tac-toe. Action `a` marks cell `a`, counted row by row from the top left."""

    name: ClassVar[str] = "tic_tac_toe"
    actions_per_cell = 1
    line_length = SIZE
    num_actions = SIZE * SIZE
    observation_shape = (SIZE, SIZE, 2)
    max_moves = SIZE * SIZE

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight rotations and reflections of the square."""
        return board_symmetries(SIZE, SIZE, self.num_actions)

    def init(self) -> State:
        """Returns the empty board."""
        return empty_board(SIZE * SIZE)

    def step(self, state: State, action: jax.Array) -> State:
        """Marks cell `action` for the player to move."""
        cell = bitboard.single(action, SIZE * SIZE)
        return after_stone(state, cell, _has_line, FULL_BOARD)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[9]` bool, True for the empty cells."""
        return ~bitboard.cells_set(bitboard.union(*state.stones), CELLS.ravel())

    def observe(self, state: State) -> jax.Array:
        """Returns `[3, 3, 2]` float32: marks of the player to move, of the opponent."""
        return bitboard.planes(own_first(state), CELLS).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def board(self, state: State) -> jax.Array:
        """Returns `[3, 3]` int8: 0 or 1 for a mark of that player, -1 where empty."""
        return bitboard.pieces(state.stones, CELLS)

    def winning_cells(self, state: State) -> tuple[rendering.Cell, ...]:
        """Returns the cells of all lines that won."""
        return cells_in_lines(np.asarray(self.board(state)), SIZE)


def _has_line(board: bitboard.Board) -> jax.Array:
    """Returns `[]` bool: whether one of the eight lines is complete."""
    complete = (
        bitboard.is_equal(bitboard.intersection(board, line), line) for line in LINES
    )
    return functools.reduce(operator.or_, complete)
