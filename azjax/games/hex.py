"""Hex: two players connect their sides of a rhombus of hexagons."""

import collections
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, rendering
from azjax.games.core import Game, select, zero_sum
from azjax.games.registry import register
from azjax.games.stones import State, after_move, empty_board
from azjax.games.symmetry import Symmetry, board_symmetry, identity
from azjax.settings import check, check_int

_NEIGHBORS = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, 0), (1, -1))  # (down, right)


@register
class Hex(Game[State]):
    """Hex on a rhombus of `size * size` cells.

    Player 0 connects the top side with the bottom, player 1 the left with the right;
    there are no draws. Each row begins half a cell further right than the one above,
    so the neighbors of the cell at (row, column) are those at (row, column - 1),
    (row, column + 1), (row - 1, column), (row - 1, column + 1), (row + 1, column) and
    (row + 1, column - 1). Cell a1 is at the top left, rows are numbered downwards.

    Action `a` puts a stone on cell `a`, counted row by row from the top left. Action
    `size * size`, `swap`, is there with the option only, and legal as the first move of
    player 1: in place of the stone of player 0 player 1 has one on the mirrored cell,
    rows and columns exchanged, from where it is as far to the sides of player 1 as the
    stone was to those of player 0.

    size: rows and columns, 2 to 19.
    swap: whether player 1 may swap.
    """

    name: ClassVar[str] = "hex"
    style = rendering.HEXAGONS
    actions_per_cell = 1

    def __init__(self, size: int = 11, swap: bool = False):
        check_int("size", size, 2, 19)
        check("swap", swap, bool)
        self.size = size
        self.swap = swap
        self.num_actions = size * size + swap
        self.observation_shape = (size, size, 4 if swap else 3)
        self.max_moves = size * size + swap
        self._grid = bitboard.Grid(size, size)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The identity and the half turn."""
        half_turn = board_symmetry(self.size, self.size, self.num_actions, turns=2)
        return (identity(self.num_actions), half_turn)

    def init(self) -> State:
        """Returns the empty board."""
        return empty_board(self._grid.num_bits)

    def step(self, state: State, action: jax.Array) -> State:
        """Puts a stone of the player to move on cell `action`, or swaps."""
        first, second = state.stones
        second_to_move = state.current_player == 1
        occupied = bitboard.union(first, second)
        stone = bitboard.difference(self._grid.cell(action), occupied)
        mine = bitboard.union(select(second_to_move, second, first), stone)
        stones = select(second_to_move, (first, mine), (mine, second))
        is_legal = bitboard.has_any(stone)
        wins = self._connects(stone, mine, second_to_move)
        if self.swap:
            is_swap = _can_swap(state) & (action == self.size**2)
            stones = select(is_swap, (second, self._mirrored(first)), stones)
            is_legal |= is_swap
        return after_move(
            state, stones, is_legal=is_legal, result=wins.astype(jnp.int8), is_over=wins
        )

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[A]` bool, True for the empty cells, and for an allowed swap."""
        occupied = bitboard.union(*state.stones)
        empty = ~bitboard.cells_set(occupied, self._grid.cells.ravel())
        return jnp.append(empty, _can_swap(state)) if self.swap else empty

    def observe(self, state: State) -> jax.Array:
        """Returns `[size, size, C]` float32, C is 3, with the option `swap` 4.

        Stones of the player to move, stones of the opponent, ones if player 1 is to
        move, and ones if the move can be a swap.
        """
        first, second = state.stones
        second_to_move = state.current_player == 1
        stones = select(second_to_move, (second, first), (first, second))
        facts = [second_to_move, _can_swap(state)][: 2 if self.swap else 1]
        everywhere = (self.size, self.size, len(facts))
        planes = [
            bitboard.planes(stones, self._grid.cells),
            jnp.broadcast_to(jnp.stack(facts), everywhere),
        ]
        return jnp.concatenate(planes, axis=-1).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser."""
        return zero_sum(state.outcome)

    def board(self, state: State) -> jax.Array:
        """Returns `[size, size]` int8: 0 or 1 for a stone of that player, else -1."""
        return bitboard.pieces(state.stones, self._grid.cells)

    @property
    def row_labels(self) -> Sequence[str]:
        """The names of the rows, from `1` at the top."""
        return [str(row + 1) for row in range(self.size)]

    def action_to_text(self, state: State, action: int) -> str:
        """Returns the cell, such as `c2`, or `swap`."""
        is_swap = self.swap and action == self.size**2
        return "swap" if is_swap else super().action_to_text(state, action)

    def last_cells(self, state: State, last_action: int) -> tuple[rendering.Cell, ...]:
        """Returns the cell of the last stone; after a swap there is only one."""
        if self.swap and last_action == self.size**2:
            cells = np.argwhere(np.asarray(self.board(state)) >= 0).tolist()
            return tuple((row, column) for row, column in cells)
        return super().last_cells(state, last_action)

    def winning_cells(self, state: State) -> tuple[rendering.Cell, ...]:
        """Returns a shortest chain that connects the sides of the winner."""
        board = np.asarray(self.board(state))
        first = _shortest_chain(board == 0)
        second = _shortest_chain(board.T == 1)
        return first or tuple((row, column) for column, row in second)

    def _connects(
        self, stone: bitboard.Board, mine: bitboard.Board, is_second: jax.Array
    ) -> jax.Array:
        """Returns `[]` bool: whether the chain of `stone` within `mine` joins the two
        sides of its player."""

        # P cells of a shortest path have 6P sides. All but 2(P - 1) of these face other
        # cells, with 6 sides each, or the edge of the board, which has 8 * size - 2.
        longest_path = (3 * self.size**2 + 4 * self.size - 2) // 5
        chain = bitboard.flood(
            stone, lambda chain: self._spread(chain, mine), longest_path - 1
        )
        cells, num_bits = self._grid.cells, self._grid.num_bits
        top, bottom, left, right = (
            bitboard.constant(line, num_bits)
            for line in (cells[0], cells[-1], cells[:, 0], cells[:, -1])
        )
        start, end = select(is_second, (left, right), (top, bottom))
        return bitboard.has_any(bitboard.intersection(chain, start)) & bitboard.has_any(
            bitboard.intersection(chain, end)
        )

    def _spread(self, chain: bitboard.Board, mine: bitboard.Board) -> bitboard.Board:
        """Returns the stones of `mine` that are in `chain` or next to it."""
        stride = self._grid.stride
        right, left = bitboard.shift(chain, 1), bitboard.shift(chain, -1)
        # A cell has two neighbors in the row below, under it and to the left of that,
        # and two above, over it and to the right of that.
        below = bitboard.shift(bitboard.union(chain, left), stride)
        above = bitboard.shift(bitboard.union(chain, right), -stride)
        around = bitboard.union(chain, left, right, below, above)
        return bitboard.intersection(around, mine)

    def _mirrored(self, stone: bitboard.Board) -> bitboard.Board:
        """Returns the board of a single stone with its row and column exchanged."""
        bit = jnp.int32(0)
        for index, word in enumerate(stone):
            zeros_above = jax.lax.clz(word).astype(jnp.int32)
            place = bitboard.WORD_BITS * (index + 1) - 1 - zeros_above
            bit = jnp.where(word != 0, place, bit)
        row, column = bit // self._grid.stride, bit % self._grid.stride
        return self._grid.cell(column * self.size + row)


def _shortest_chain(stones: np.ndarray) -> tuple[rendering.Cell, ...]:
    """Returns a chain of the fewest stones (`[size, size]` bool) that connects top and
    bottom, from the bottom up; none if they are not connected."""
    size = len(stones)
    starts = [(0, column) for column in range(size) if stones[0, column]]
    above: dict[rendering.Cell, rendering.Cell | None] = dict.fromkeys(starts)
    waiting = collections.deque(starts)  # those that are nearest to the top first
    while waiting:
        cell = waiting.popleft()
        row, column = cell
        if row == size - 1:
            chain = [cell]
            while (before := above[chain[-1]]) is not None:
                chain.append(before)
            return tuple(chain)
        for down, right in _NEIGHBORS:
            other = (row + down, column + right)
            is_inside = 0 <= other[0] < size and 0 <= other[1] < size
            if is_inside and stones[other] and other not in above:
                above[other] = cell
                waiting.append(other)
    return ()


def _can_swap(state: State) -> jax.Array:
    """Returns `[]` bool: whether player 1 is to move for the first time."""
    first, second = state.stones
    has_moved = bitboard.has_any(first), bitboard.has_any(second)
    return (state.current_player == 1) & has_moved[0] & ~has_moved[1]
