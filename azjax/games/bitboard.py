"""Boards as uint32 words, one bit a cell.

A board of N words is a `[N]` uint32 array, the low word first, so that bit `i` of the
board is bit `i % 32` of word `i // 32`.
"""

import jax
import jax.numpy as jnp
import numpy as np

WORD_BITS = 32


def shift_right(board: jax.Array, count: int) -> jax.Array:
    """Moves every bit of `board` (`[N]` uint32) down by `count` cells, 0 <= count < 32.

    What falls off the low end is lost.
    """
    if count == 0:
        return board
    from_above = jnp.append(board[1:], jnp.uint32(0)) << jnp.uint32(WORD_BITS - count)
    return (board >> jnp.uint32(count)) | from_above


def planes(boards: jax.Array, cells: np.ndarray) -> jax.Array:
    """Spreads bitboards out into planes.

    Args:
        boards: `[..., N]` uint32.
        cells: `[H, W]` int, the bit of each cell.

    Returns:
        `[H, W, ...]` bool, True where the bit is set.
    """
    words = jnp.moveaxis(boards, -1, 0)[cells // WORD_BITS]  # [H, W, ...]
    bits = np.asarray(cells % WORD_BITS, np.uint32)
    bits = bits.reshape(bits.shape + (1,) * (boards.ndim - 1))
    return ((words >> bits) & jnp.uint32(1)).astype(bool)


def has_line(board: jax.Array, length: int, steps: tuple[int, ...]) -> jax.Array:
    """Returns `[]` bool: whether `length` set bits lie in a row along one of `steps`.

    Cells outside the playing area must separate the ends of its rows, or lines would
    wrap around.

    Args:
        board: `[N]` uint32.
        length: cells in a line, at least 1.
        steps: how many bits lie between neighbours, for each direction of a line.
    """
    lines = jnp.zeros_like(board)
    for step in steps:
        run, have = board, 1
        while have < length:  # each round can double the length of the runs found
            grow = min(have, length - have)
            run, have = run & shift_right(run, step * grow), have + grow
        lines |= run
    return (lines != 0).any()
