"""Tic-tac-toe: three in a row on a board of nine cells."""

import dataclasses
import functools
import operator
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, rendering
from azjax.games.core import Game, select, zero_sum
from azjax.games.lines import cells_in_lines
from azjax.games.registry import register
from azjax.games.symmetry import Symmetry, board_symmetries

SIZE = 3
CELLS = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
_ROWS = [*CELLS, *CELLS.T, CELLS.diagonal(), CELLS[:, ::-1].diagonal()]
LINES = [bitboard.constant(row, SIZE * SIZE) for row in _ROWS]
FULL_BOARD = bitboard.constant(CELLS, SIZE * SIZE)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A tic-tac-toe position, 11 bytes.

    stones: the bitboards of players 0 and 1, one `[]` uint32 word each, row by row.
    current_player: `[]` int8; the player to move, 0 moves first.
    outcome: `[]` int8; +1, 0, -1 for player 0 once `terminated`, 0 before.
    terminated: `[]` bool.
    """

    stones: tuple[bitboard.Board, bitboard.Board]
    current_player: jax.Array
    outcome: jax.Array
    terminated: jax.Array


@register
class TicTacToe(Game[State]):
    """Tic-tac-toe. Action `a` marks cell `a`, counted row by row from the top left."""

    name: ClassVar[str] = "tic_tac_toe"
    num_actions = SIZE * SIZE
    observation_shape = (SIZE, SIZE, 2)
    max_moves = SIZE * SIZE

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight rotations and reflections of the square."""
        return board_symmetries(SIZE, SIZE, self.num_actions)

    def init(self) -> State:
        """Returns the empty board."""
        no_stones = bitboard.empty(SIZE * SIZE)
        return State(
            stones=(no_stones, no_stones),
            current_player=jnp.int8(0),
            outcome=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Marks cell `action` for the player to move."""
        first, second = state.stones
        second_to_move = state.current_player == 1
        occupied = bitboard.union(first, second)
        mark = _mark(occupied, action)
        mine = bitboard.union(select(second_to_move, second, first), mark)
        is_legal = bitboard.has_any(mark)
        wins = _has_line(mine)
        is_full = bitboard.is_equal(bitboard.union(occupied, mark), FULL_BOARD)
        mover_result = jnp.where(is_legal, wins.astype(jnp.int8), jnp.int8(-1))
        after = State(
            stones=select(second_to_move, (first, mine), (mine, second)),
            current_player=jnp.int8(1) - state.current_player,
            outcome=jnp.where(second_to_move, -mover_result, mover_result),
            terminated=~is_legal | wins | is_full,
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[9]` bool, True for the empty cells."""
        return ~bitboard.cells_set(bitboard.union(*state.stones), CELLS.ravel())

    def observe(self, state: State) -> jax.Array:
        """Returns `[3, 3, 2]` float32: marks of the player to move, of the opponent."""
        first, second = state.stones
        stones = select(state.current_player == 1, (second, first), (first, second))
        return bitboard.planes(stones, CELLS).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def board(self, state: State) -> jax.Array:
        """Returns `[3, 3]` int8: 0 or 1 for a mark of that player, -1 where empty."""
        return bitboard.pieces(state.stones, CELLS)

    def winning_cells(self, state: State) -> tuple[rendering.Cell, ...]:
        """Returns the cells of all lines that won."""
        return cells_in_lines(np.asarray(self.board(state)), SIZE)


def _mark(occupied: bitboard.Board, action: jax.Array) -> bitboard.Board:
    """Returns the mark in cell `action`: no bit where the cell is taken or there is no
    such cell."""
    cell = jnp.asarray(action).astype(jnp.uint32)
    mark = jnp.where(cell < SIZE * SIZE, jnp.uint32(1) << cell, jnp.uint32(0))
    return (mark & ~occupied[0],)


def _has_line(board: bitboard.Board) -> jax.Array:
    """Returns `[]` bool: whether one of the eight lines is complete."""
    complete = (
        bitboard.is_equal(bitboard.intersection(board, line), line) for line in LINES
    )
    return functools.reduce(operator.or_, complete)
