"""Positions of games in which two players put stones on a board, and their lines."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard
from azjax.games.core import select
from azjax.games.rendering import Cell

_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))  # (down, right)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A position: three bytes and the bitboards.

    stones: the bitboards of players 0 and 1, N `[]` uint32 words each.
    current_player: `[]` int8; the player to move, 0 moves first.
    outcome: `[]` int8; +1, 0, -1 for player 0 once `terminated`, 0 before.
    terminated: `[]` bool.
    """

    stones: tuple[bitboard.Board, bitboard.Board]
    current_player: jax.Array
    outcome: jax.Array
    terminated: jax.Array


def first_position(stones: tuple[bitboard.Board, bitboard.Board]) -> State:
    """Returns the position of `stones` with player 0 to move."""
    return State(
        stones=stones,
        current_player=jnp.int8(0),
        outcome=jnp.int8(0),
        terminated=jnp.bool(False),
    )


def empty_board(num_bits: int) -> State:
    """Returns the first position of a game that begins without stones."""
    return first_position((bitboard.empty(num_bits), bitboard.empty(num_bits)))


def own_first(state: State) -> tuple[bitboard.Board, bitboard.Board]:
    """Returns the stones of the player to move, and of the opponent."""
    first, second = state.stones
    return select(state.current_player == 1, (second, first), (first, second))


def after_move(
    state: State,
    stones: tuple[bitboard.Board, bitboard.Board],
    *,
    is_legal: jax.Array,
    result: jax.Array,
    is_over: jax.Array,
) -> State:
    """Returns the position after a move; the same position if the game was over.

    Args:
        state: the position before the move.
        stones: the bitboards of players 0 and 1 after it.
        is_legal: `[]` bool; an illegal move loses.
        result: `[]` int8; 1, 0 or -1 for the player who made a legal move.
        is_over: `[]` bool; whether a legal move ended the game.
    """
    second_moved = state.current_player == 1
    mover_result = jnp.where(is_legal, result, jnp.int8(-1))
    after = State(
        stones=stones,
        current_player=jnp.int8(1) - state.current_player,
        outcome=jnp.where(second_moved, -mover_result, mover_result),
        terminated=~is_legal | is_over,
    )
    return select(state.terminated, state, after)


def after_stone(
    state: State,
    cell: bitboard.Board,
    has_line: Callable[[bitboard.Board], jax.Array],
    full: bitboard.Board,
) -> State:
    """Returns the position after the player to move puts a stone on a cell.

    A line wins, a full board without a line is a draw, and an occupied cell loses.

    Args:
        state: the position before the move.
        cell: the bit of the cell; no bit if there is no such cell.
        has_line: whether the stones of one player have a line, `[]` bool.
        full: the bits of all cells.
    """
    first, second = state.stones
    second_to_move = state.current_player == 1
    occupied = bitboard.union(first, second)
    stone = bitboard.difference(cell, occupied)
    mine = bitboard.union(select(second_to_move, second, first), stone)
    wins = has_line(mine)
    is_full = bitboard.is_equal(bitboard.union(occupied, stone), full)
    return after_move(
        state,
        select(second_to_move, (first, mine), (mine, second)),
        is_legal=bitboard.has_any(stone),
        result=wins.astype(jnp.int8),
        is_over=wins | is_full,
    )


def cells_in_lines(
    board: np.ndarray, length: int, *, exact: bool = False
) -> tuple[Cell, ...]:
    """Returns the cells of all rows, columns and diagonals of equal pieces, in order,
    for people to see which lines won.

    Args:
        board: `[H, W]` int; -1 where empty.
        length: cells that a line has at least.
        exact: whether longer lines do not count.
    """
    # What is rolled over an edge comes no further than the margin.
    padded = np.pad(board, length, constant_values=-1)
    found = np.zeros(padded.shape, bool)
    for step in _STEPS:
        before, *line, behind = (
            _moved(padded, step, -place) == padded for place in range(-1, length + 1)
        )
        starts = np.logical_and.reduce([padded >= 0, *line])
        if exact:
            starts &= ~before & ~behind
        for place in range(length):
            found |= _moved(starts, step, place)
    cells = np.argwhere(found[length:-length, length:-length]).tolist()
    return tuple((row, column) for row, column in cells)


def _moved(cells: np.ndarray, step: tuple[int, int], times: int) -> np.ndarray:
    return np.roll(cells, (times * step[0], times * step[1]), axis=(0, 1))
