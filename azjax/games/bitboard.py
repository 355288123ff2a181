"""Boards as uint32 words, one bit a cell.

A board is a tuple of N words, `[]` uint32 each, the low one first: bit `i` of the board
is bit `i % 32` of word `i // 32`. The words are arrays of their own because the rules
of many games at once then are arithmetic on `[B]` vectors, which XLA fuses and spreads
over the lanes of a processor; on a `[B, N]` array the same rules are several times
slower.
"""

import functools
import itertools
import operator
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

WORD_BITS = 32

Board = tuple[jax.Array | np.uint32, ...]


def empty(num_bits: int) -> Board:
    """Returns the board of `num_bits` bits, none set."""
    return (jnp.uint32(0),) * -(-num_bits // WORD_BITS)


def constant(cells: np.ndarray, num_bits: int) -> Board:
    """Returns the board of `num_bits` bits with those of `cells` (int) set."""
    bits = sum(1 << int(cell) for cell in cells.flat)
    words = (bits >> first for first in range(0, num_bits, WORD_BITS))
    return tuple(np.uint32(word & 0xFFFFFFFF) for word in words)


def union(*boards: Board) -> Board:
    """Returns the board of the bits that are set in any of `boards`."""
    return tuple(
        functools.reduce(operator.or_, words) for words in zip(*boards, strict=True)
    )


def intersection(*boards: Board) -> Board:
    """Returns the board of the bits that are set in all of `boards`."""
    return tuple(
        functools.reduce(operator.and_, words) for words in zip(*boards, strict=True)
    )


def has_any(board: Board) -> jax.Array:
    """Returns `[]` bool: whether any bit is set."""
    return functools.reduce(operator.or_, board) != 0


def is_equal(board: Board, other: Board) -> jax.Array:
    """Returns `[]` bool: whether the same bits are set in both."""
    pairs = zip(board, other, strict=True)
    return functools.reduce(operator.and_, (word == same for word, same in pairs))


def shift_right(board: Board, count: int) -> Board:
    """Moves every bit of `board` down by `count` cells, 0 <= count < 32.

    What falls off the low end is lost.
    """
    if count == 0:
        return board
    low, high = jnp.uint32(count), jnp.uint32(WORD_BITS - count)
    from_above = (*(word << high for word in board[1:]), jnp.uint32(0))
    return tuple(
        word >> low | above for word, above in zip(board, from_above, strict=True)
    )


def has_line(board: Board, length: int, steps: tuple[int, ...]) -> jax.Array:
    """Returns `[]` bool: whether `length` set bits lie in a row along one of `steps`.

    Cells outside the playing area must separate the ends of its rows, or lines would
    wrap around.

    Args:
        board: the cells that count.
        length: cells in a line, at least 1.
        steps: how many bits lie between neighbours, for each direction of a line.
    """
    lines = []
    for step in steps:
        run, have = board, 1
        while have < length:  # each round can double the length of the runs found
            grow = min(have, length - have)
            run = intersection(run, shift_right(run, step * grow))
            have += grow
        lines.append(run)
    return has_any(union(*lines))


def cells_set(board: Board, cells: np.ndarray) -> jax.Array:
    """Returns bool of the shape of `cells` (int): True where that bit is set."""
    words = jnp.stack(board)[cells // WORD_BITS]
    return (words >> np.asarray(cells % WORD_BITS, np.uint32)) & jnp.uint32(1) != 0


def planes(boards: Sequence[Board], cells: np.ndarray) -> jax.Array:
    """Spreads boards out into planes.

    Args:
        boards: P boards of N words.
        cells: `[H, W]` int, the bit of each cell.

    Returns:
        `[H, W, P]` bool, True where the bit is set.
    """
    # One long board, and in it the cells of one board after the other.
    joined = tuple(itertools.chain.from_iterable(boards))
    first_bit = WORD_BITS * len(boards[0]) * np.arange(len(boards))
    return cells_set(joined, cells[..., None] + first_bit)
