"""Gomoku and its kin: so many in a row on a rectangular board."""

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
from azjax.settings import check, check_int, is_int
from azjax.text import quoted


@register
class Gomoku(Game[State]):
    """Gomoku, or any m,n,k game: `gomoku:3,3,3` is tic-tac-toe.

    Action `a` puts a stone on cell `a`, counted row by row from the top left. The first
    to have `length` stones in a row, column or diagonal wins; a full board is a draw.

    height: rows, 2 to 19.
    width: columns, 2 to 19.
    length: stones in a line that wins, 1 to the longer side of the board.
    exact: whether longer lines do not win, as in tournaments for both players.
    """

    name: ClassVar[str] = "gomoku"
    style = rendering.STONES
    actions_per_cell = 1

    def __init__(
        self, height: int = 15, width: int = 15, length: int = 5, exact: bool = False
    ):
        check_int("height", height, 2, 19)
        check_int("width", width, 2, 19)
        longest = max(height, width)
        if not is_int(length) or not 1 <= length <= longest:
            raise ValueError(
                f"length must be an int from 1 to {longest}, the longer side of the "
                f"board: {quoted(length)}"
            )
        check("exact", exact, bool)
        self.height = height
        self.width = width
        self.length = length
        self.exact = exact
        # Planes for lines of this length or more would be wrong with `exact`.
        self.line_length = 0 if exact else length
        self.num_actions = height * width
        self.observation_shape = (height, width, 2)
        self.max_moves = height * width
        self._grid = bitboard.Grid(height, width)
        stride = self._grid.stride
        down = (stride - 1, stride, stride + 1) if length <= height else ()
        self._steps = (1, *down)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The eight of the square, or the four of another rectangle."""
        return board_symmetries(self.height, self.width, self.num_actions)

    def init(self) -> State:
        """Returns the empty board."""
        return empty_board(self._grid.num_bits)

    def step(self, state: State, action: jax.Array) -> State:
        """Puts a stone of the player to move on cell `action`."""
        return after_stone(
            state, self._grid.cell(action), self._has_line, self._grid.full
        )

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[A]` bool, True for the empty cells."""
        occupied = bitboard.union(*state.stones)
        return ~bitboard.cells_set(occupied, self._grid.cells.ravel())

    def observe(self, state: State) -> jax.Array:
        """Returns `[height, width, 2]` float32: stones of the player to move, of the
        opponent."""
        return bitboard.planes(own_first(state), self._grid.cells).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in stones on lines that can still be won."""
        return bitboard.open_lines_lead(
            *own_first(state),
            self._grid.full,
            self.length,
            self._steps,
            exact=self.exact,
        )

    def board(self, state: State) -> jax.Array:
        """Returns `[height, width]` int8: 0 or 1 where that player has a stone, else
        -1."""
        return bitboard.pieces(state.stones, self._grid.cells)

    def winning_cells(self, state: State) -> tuple[rendering.Cell, ...]:
        """Returns the cells of all lines that won."""
        return cells_in_lines(
            np.asarray(self.board(state)), self.length, exact=self.exact
        )

    def _has_line(self, mine: bitboard.Board) -> jax.Array:
        """Returns `[]` bool: whether `mine` has a line that wins."""
        if not self.exact:
            return bitboard.has_line(mine, self.length, self._steps)
        lines = []
        for step in self._steps:
            starts = bitboard.line_starts(mine, self.length, step)
            before = bitboard.shift(mine, step)
            behind = bitboard.shift(mine, -step * self.length)
            lines.append(bitboard.difference(starts, bitboard.union(before, behind)))
        return bitboard.has_any(bitboard.union(*lines))
