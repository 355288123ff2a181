"""Othello: discs between two of the opponent's are turned over."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard, rendering
from azjax.games.core import Game, select, zero_sum
from azjax.games.registry import register
from azjax.games.stones import State, after_move, first_position, own_first
from azjax.games.symmetry import Symmetry, board_symmetry

SIZE = 8
NUM_CELLS = SIZE * SIZE
PASS = NUM_CELLS
# Bit of each cell, top row first: four rows fill a word.
CELLS = np.arange(NUM_CELLS).reshape(SIZE, SIZE)
BITS = np.uint32(1) << np.arange(bitboard.WORD_BITS, dtype=np.uint32)
START = (
    bitboard.constant(CELLS[[3, 4], [4, 3]], NUM_CELLS),  # black: e4 d5
    bitboard.constant(CELLS[[3, 4], [3, 4]], NUM_CELLS),  # white: d4 e5
)
CORNERS = bitboard.constant(CELLS[[0, 0, -1, -1], [0, -1, 0, -1]], NUM_CELLS)
# Bits from a cell to its neighbor in four directions; the other four are the opposite
# ones. Words of shape [4] hold a board for each direction.
STEPS = np.array([1, 7, 8, 9], np.uint32)
# The cells of a word that a line in these directions may pass through: those at the
# side edges would let it wrap around, except where it goes straight down.
PASSABLE = np.where(STEPS == SIZE, np.uint32(0xFFFFFFFF), np.uint32(0x7E7E7E7E))


@register
class Othello(Game[State]):
    """Othello by the rules of the World Othello Federation.

    Action `a < 64` places a disc in cell `a`, counted row by row from a1 at the top
    left; it must turn discs over. Action 64 passes, which is legal where nothing can be
    placed and only there. The game is over as soon as neither player can place a disc;
    more discs win, equally many are a draw.
    """

    name: ClassVar[str] = "othello"
    num_actions = NUM_CELLS + 1
    observation_shape = (SIZE, SIZE, 4)
    # 60 discs are placed at most, and a pass comes neither first nor after a pass, nor
    # does it follow the last disc.
    max_moves = 60 + 59
    style = rendering.OTHELLO
    actions_per_cell = 1

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The four that keep the first position: the identity, the half turn and the
        reflections in the diagonals."""
        return tuple(
            board_symmetry(SIZE, SIZE, self.num_actions, mirror=mirror, turns=turns)
            for mirror, turns in ((False, 0), (False, 2), (True, 1), (True, 3))
        )

    def init(self) -> State:
        """Returns the board with the four discs of the start."""
        return first_position(jax.tree.map(jnp.uint32, START))

    def step(self, state: State, action: jax.Array) -> State:
        """Places a disc of the player to move in cell `action`, or passes."""
        is_pass = jnp.asarray(action) == PASS
        mine, theirs = own_first(state)
        placed = bitboard.difference(
            bitboard.single(action, NUM_CELLS), bitboard.union(mine, theirs)
        )
        turned = _turned(mine, theirs, placed)
        turns_any = bitboard.has_any(turned)
        placed = select(turns_any, placed, bitboard.empty(NUM_CELLS))
        mine = bitboard.union(mine, turned, placed)
        theirs = bitboard.difference(theirs, turned)
        i_can = bitboard.has_any(_placeable(mine, theirs))
        they_can = bitboard.has_any(_placeable(theirs, mine))
        # After a pass the board is what it was, so `i_can` says if it was allowed.
        is_legal = turns_any | (is_pass & ~i_can)
        is_over = ~i_can & ~they_can
        lead = jnp.sign(bitboard.count(mine) - bitboard.count(theirs)).astype(jnp.int8)
        second_to_move = state.current_player == 1
        stones = select(second_to_move, (theirs, mine), (mine, theirs))
        result = jnp.where(is_over, lead, 0)
        return after_move(
            state, stones, is_legal=is_legal, result=result, is_over=is_over
        )

    def legal_action_mask(self, state: State) -> jax.Array:
        """Returns `[65]` bool, True for cells where a disc turns others over; True for
        the pass where there is no such cell."""
        placeable = _placeable(*own_first(state))
        cells = (word & BITS != 0 for word in placeable)
        return jnp.concatenate([*cells, ~bitboard.has_any(placeable)[None]])

    def observe(self, state: State) -> jax.Array:
        """Returns `[8, 8, 4]` float32: discs of the player to move, of the opponent;
        cells where the player to move, and where the opponent, could place a disc."""
        mine, theirs = own_first(state)
        boards = mine, theirs, _placeable(mine, theirs), _placeable(theirs, mine)
        words = jnp.stack([jnp.stack(board) for board in boards], axis=-1)  # [2, 4]
        cells = words[:, None] & BITS[:, None] != 0  # [2, 32, 4]
        return cells.reshape(self.observation_shape).astype(jnp.float32)

    def rewards(self, state: State) -> jax.Array:
        """Returns `[2]` float32: 1 to the winner, -1 to the loser, zeros for a draw."""
        return zero_sum(state.outcome)

    def evaluate(self, state: State) -> jax.Array:
        """Returns `[]` float32: the lead in mobility plus four times that in corners,
        scaled to [-1, 1]."""
        mine, theirs = own_first(state)
        moves = [_placeable(mine, theirs), _placeable(theirs, mine)]
        corners = [bitboard.intersection(discs, CORNERS) for discs in (mine, theirs)]
        more_moves, more_corners = (
            bitboard.count(own) - bitboard.count(other)
            for own, other in (moves, corners)
        )
        lead = (more_moves + 4 * more_corners).astype(jnp.float32)
        return lead / (16 + jnp.abs(lead))

    def board(self, state: State) -> jax.Array:
        """Returns `[8, 8]` int8: 0 for black, 1 for white, -1 where empty."""
        return bitboard.pieces(state.stones, CELLS)

    def owners(self, state: State) -> jax.Array:
        """Returns `[8, 8]` int8, the owner of each disc: 0 black, 1 white, -1 where
        empty."""
        return self.board(state)

    @property
    def row_labels(self) -> Sequence[str]:
        """`1` to `8` from the top, as Othello's rows are counted."""
        return [str(row + 1) for row in range(SIZE)]

    def result_text(self, state: State) -> str:
        """Returns the discs of both players, the larger number first, as `34 to 30`."""
        other = jnp.int8(1) - state.current_player
        can_go_on = (
            not self.legal_action_mask(either)[PASS]
            for either in (state, dataclasses.replace(state, current_player=other))
        )
        if any(can_go_on):  # or else somebody made an illegal move
            return ""
        board = np.asarray(self.board(state))
        fewer, more = sorted(((board == 0).sum(), (board == 1).sum()))
        return f"{more} to {fewer}"


def _rise(board: bitboard.Board, steps: np.ndarray) -> bitboard.Board:
    """Moves the bits up by `steps`, `[4]` uint32 below 32."""
    low, high = board
    carried = jnp.right_shift(low, bitboard.WORD_BITS - steps)
    return jnp.left_shift(low, steps), jnp.left_shift(high, steps) | carried


def _fall(board: bitboard.Board, steps: np.ndarray) -> bitboard.Board:
    """Moves the bits down by `steps`, `[4]` uint32 below 32."""
    low, high = board
    carried = jnp.left_shift(high, bitboard.WORD_BITS - steps)
    return jnp.right_shift(low, steps) | carried, jnp.right_shift(high, steps)


def _rows(
    start: bitboard.Board, through: bitboard.Board, move: Callable
) -> bitboard.Board:
    """Returns the unbroken rows of cells of `through` that lead away from `start`.

    Args:
        start: words of shape `[]`.
        through: words of shape `[4]`.
        move: `_rise` or `_fall`.
    """
    rows = bitboard.intersection(through, move(start, STEPS))
    rows = bitboard.union(rows, bitboard.intersection(through, move(rows, STEPS)))
    # At most six discs lie between two others: grow the rows by two cells, twice.
    pairs = bitboard.intersection(through, move(through, STEPS))
    for _ in range(2):
        grown = bitboard.intersection(pairs, move(rows, 2 * STEPS))
        rows = bitboard.union(rows, grown)
    return rows


def _turned(
    mine: bitboard.Board, theirs: bitboard.Board, placed: bitboard.Board
) -> bitboard.Board:
    """Returns the opponent's discs that the disc `placed` turns over."""
    passable = tuple(jnp.bitwise_and(word, PASSABLE) for word in theirs)
    turned = []
    for move in (_rise, _fall):
        rows = _rows(placed, passable, move)
        is_closed = bitboard.has_any(bitboard.intersection(move(rows, STEPS), mine))
        turned.append(tuple(jnp.where(is_closed, word, 0) for word in rows))
    return _in_any_direction(bitboard.union(*turned))


def _placeable(mine: bitboard.Board, theirs: bitboard.Board) -> bitboard.Board:
    """Returns the empty cells where a disc of mine would turn discs of theirs over."""
    passable = tuple(jnp.bitwise_and(word, PASSABLE) for word in theirs)
    ends = (move(_rows(mine, passable, move), STEPS) for move in (_rise, _fall))
    reached = _in_any_direction(bitboard.union(*ends))
    return bitboard.difference(reached, bitboard.union(mine, theirs))


def _in_any_direction(board: bitboard.Board) -> bitboard.Board:
    """Returns the union of the boards in words of shape `[4]`."""
    # One reduction of both words: two of them would each compute everything before.
    # XLA keeps its result, where it would compute a mere union again for every cell of
    # a mask.
    zeros = (np.uint32(0),) * len(board)
    return jax.lax.reduce(board, zeros, bitboard.union, dimensions=(0,))
