"""Positions of games in which two players put stones on a board."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from azjax.games import bitboard
from azjax.games.core import select


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
