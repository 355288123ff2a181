"""Tic-tac-toe: three in a row on a board of nine cells."""

import functools
import operator
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax.games import bitboard, rendering
from azjax.games.core import Game, Symmetry, register, select

SIZE = 3
CELLS = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
_ROWS = [*CELLS, *CELLS.T, CELLS.diagonal(), CELLS[:, ::-1].diagonal()]
LINES = [bitboard.constant(row, SIZE * SIZE) for row in _ROWS]
FULL_BOARD = bitboard.constant(CELLS, SIZE * SIZE)


@struct.dataclass
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
        return tuple(
            Symmetry(
                functools.partial(_transform, turns=turns, mirror=mirror),
                np.rot90(CELLS[:, ::-1] if mirror else CELLS, turns).ravel(),
            )
            for mirror in (False, True)
            for turns in range(4)
        )

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
        outcome = state.outcome.astype(jnp.float32)
        return jnp.stack([outcome, -outcome])

    def action_to_text(self, action: int) -> str:
        """Returns column and row, `a1` at the bottom left."""
        return rendering.cell_to_text(action // SIZE, action % SIZE, SIZE)

    def text_to_action(self, text: str) -> int:
        """Reads column and row, `a1` to `c3`."""
        row, column = rendering.text_to_cell(text, SIZE, SIZE)
        return row * SIZE + column

    def to_text(self, state: State, last_action: int | None = None) -> str:
        """Draws the board, `X` for player 0 and `O` for player 1."""
        return rendering.board_to_text(
            _board(state),
            last_cell=None if last_action is None else divmod(last_action, SIZE),
            column_labels="abc",
            row_labels="321",
        )

    def to_svg(
        self,
        state: State,
        last_action: int | None = None,
        policies: rendering.Policies | None = None,
    ) -> str:
        """Draws the board as marks on a grid, policies as bars in the empty cells."""
        cells = {
            name: np.reshape(policy, (SIZE, SIZE))
            for name, policy in (policies or {}).items()
        }
        return rendering.marks_to_svg(
            _board(state),
            last_cell=None if last_action is None else divmod(last_action, SIZE),
            column_labels="abc",
            row_labels="321",
            policies=cells,
        )


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


def _transform(observation: jax.Array, turns: int, mirror: bool) -> jax.Array:
    """Mirrors `[..., 3, 3, C]` left to right, then turns it by quarters."""
    mirrored = jnp.flip(observation, axis=-2) if mirror else observation
    return jnp.rot90(mirrored, turns, axes=(-3, -2))


def _board(state: State) -> np.ndarray:
    """Returns `[3, 3]` int: 0 or 1 where that player has a mark, -1 where empty."""
    marks = np.asarray(bitboard.planes(state.stones, CELLS))
    return np.where(marks[..., 0], 0, np.where(marks[..., 1], 1, -1))
