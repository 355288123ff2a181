"""Tic-tac-toe: three in a row on a board of nine cells."""

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
LINES = np.array([sum(1 << int(cell) for cell in row) for row in _ROWS], np.uint32)
FULL_BOARD = np.uint32((1 << SIZE * SIZE) - 1)


@struct.dataclass
class State:
    """A tic-tac-toe position, 11 bytes.

    stones: `[2, 1]` uint32; the bitboards of players 0 and 1, row by row.
    current_player: `[]` int8; the player to move, 0 moves first.
    outcome: `[]` int8; +1, 0, -1 for player 0 once `terminated`, 0 before.
    terminated: `[]` bool.
    """

    stones: jax.Array
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
                lambda observation, turns=turns, mirror=mirror: _transform(
                    observation, turns, mirror, axes=(-3, -2)
                ),
                np.asarray(_transform(CELLS, turns, mirror, axes=(0, 1))).ravel(),
            )
            for mirror in (False, True)
            for turns in range(4)
        )

    def init(self) -> State:
        """Returns the empty board."""
        return State(
            stones=jnp.zeros((2, 1), jnp.uint32),
            current_player=jnp.int8(0),
            outcome=jnp.int8(0),
            terminated=jnp.bool(False),
        )

    def step(self, state: State, action: jax.Array) -> State:
        """Marks cell `action` for the player to move."""
        cell = jnp.asarray(action).astype(jnp.uint32)
        mark = jnp.where(cell < SIZE * SIZE, jnp.uint32(1) << cell, jnp.uint32(0))
        occupied = state.stones[0, 0] | state.stones[1, 0]
        is_legal = mark & ~occupied != 0
        is_mover = jnp.arange(2) == state.current_player
        stones = state.stones[:, 0] | jnp.where(is_mover & is_legal, mark, 0)
        mine = jnp.where(state.current_player == 1, stones[1], stones[0])
        wins = ((mine & LINES) == LINES).any()
        mover_result = jnp.where(is_legal, wins.astype(jnp.int8), jnp.int8(-1))
        after = State(
            stones=stones[:, None],
            current_player=jnp.int8(1) - state.current_player,
            outcome=jnp.where(state.current_player == 1, -mover_result, mover_result),
            terminated=~is_legal | wins | (occupied | mark == FULL_BOARD),
        )
        return select(state.terminated, state, after)

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[9]` bool, True for the empty cells."""
        return ~bitboard.planes(state.stones[0] | state.stones[1], CELLS).ravel()

    def observe(self, state: State) -> jax.Array:
        """Returns `[3, 3, 2]` float32: marks of the player to move, of the opponent."""
        stones = jnp.where(
            state.current_player == 1, state.stones[::-1], state.stones
        )
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

    def to_svg(self, state: State, last_action: int | None = None) -> str:
        """Draws the board as marks on a grid."""
        return rendering.marks_to_svg(
            _board(state),
            last_cell=None if last_action is None else divmod(last_action, SIZE),
            column_labels="abc",
            row_labels="321",
        )


def _transform(array, turns: int, mirror: bool, axes: tuple[int, int]):
    """Mirrors, then turns by quarters, the board in two axes of an array."""
    numpy = np if isinstance(array, np.ndarray) else jnp
    array = numpy.flip(array, axes[1]) if mirror else array
    return numpy.rot90(array, turns, axes)


def _board(state: State) -> np.ndarray:
    """Returns `[3, 3]` int: 0 or 1 where that player has a mark, -1 where empty."""
    marks = np.asarray(bitboard.planes(state.stones, CELLS))
    return np.where(marks[..., 0], 0, np.where(marks[..., 1], 1, -1))
