"""Boards as uint32 words, one bit a cell.

A board is a tuple of N words, `[]` uint32 each, the low one first: bit `i` of the board
is bit `i % 32` of word `i // 32`. The words are arrays of their own because the rules
of many games at once then are arithmetic on `[B]` vectors, which XLA fuses and spreads
over the lanes of a processor; on a `[B, N]` array the same rules are several times
slower.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azjax.devices import target_platform

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


def difference(board: Board, other: Board) -> Board:
    """Returns the board of the bits that are set in `board` and not in `other`."""
    return tuple(word & ~cut for word, cut in zip(board, other, strict=True))


def count(board: Board) -> jax.Array:
    """Returns `[]` int32, the number of bits that are set."""
    counts = (jax.lax.population_count(word) for word in board)
    return functools.reduce(operator.add, counts).astype(jnp.int32)


def single(bit: jax.Array, num_bits: int) -> Board:
    """Returns the board with bit number `bit` (`[]` int32) set.

    No bit is set where `bit` is negative or at least `num_bits`.
    """
    bit = jnp.asarray(bit).astype(jnp.uint32)  # a negative one becomes a huge one
    bit = jnp.where(
        bit < num_bits, bit, jnp.uint32(WORD_BITS * -(-num_bits // WORD_BITS))
    )
    word = jnp.uint32(1) << bit % WORD_BITS
    return tuple(
        jnp.where(bit // WORD_BITS == index, word, jnp.uint32(0))
        for index in range(-(-num_bits // WORD_BITS))
    )


def shift(board: Board, steps: int) -> Board:
    """Moves every bit of `board` up by `steps` cells, or down where it is negative.

    What falls off an end of the words is lost.
    """
    num_words = len(board)
    words, bits = divmod(abs(steps), WORD_BITS)
    zeros = (jnp.uint32(0),) * min(words, num_words)
    if steps < 0:
        board = (*board[words:], *zeros)
    else:
        board = (*zeros, *board[: max(num_words - words, 0)])
    if bits == 0:
        return board
    here, there = jnp.uint32(bits), jnp.uint32(WORD_BITS - bits)
    if steps < 0:
        from_above = (*(word << there for word in board[1:]), jnp.uint32(0))
        pairs = zip(board, from_above, strict=True)
        return tuple(word >> here | above for word, above in pairs)
    from_below = (jnp.uint32(0), *(word >> there for word in board[:-1]))
    pairs = zip(board, from_below, strict=True)
    return tuple(word << here | below for word, below in pairs)


def flood(start: Board, spread: Callable[[Board], Board], num_steps: int) -> Board:
    """Applies `spread` until it adds no bits.

    Args:
        start: the first bits; the words may have an axis for several boards.
        spread: `board -> board`, the same bits and maybe more.
        num_steps: a number of steps after which `spread` adds nothing to any board.
    """
    platform = target_platform()
    steps_at_once = 2 if platform == "cpu" else 8

    def advance(board: Board) -> Board:
        for _ in range(steps_at_once):
            board = spread(board)
        return board

    if platform == "gpu":
        # If the GPU waits for the host, a test for the end takes longer than all steps.
        num_rounds = -(-num_steps // steps_at_once)
        return jax.lax.fori_loop(0, num_rounds, lambda _, board: advance(board), start)

    def num_bits(board: Board) -> jax.Array:
        return count(board).sum(dtype=jnp.int32)

    return jax.lax.while_loop(
        lambda carry: num_bits(carry[0]) != carry[1],
        lambda carry: (advance(carry[0]), num_bits(carry[0])),
        (start, jnp.int32(-1)),
    )[0]


def has_line(board: Board, length: int, steps: tuple[int, ...]) -> jax.Array:
    """Returns `[]` bool: whether `length` set bits lie in a row along one of `steps`.

    Cells outside the playing area must separate the ends of its rows, or lines would
    wrap around.

    Args:
        board: the cells that count.
        length: cells in a line, at least 1.
        steps: how many bits lie between neighbors, for each direction of a line.
    """
    return has_any(union(*(line_starts(board, length, step) for step in steps)))


def line_starts(board: Board, length: int, step: int) -> Board:
    """Returns the cells from which on `length` set bits lie `step` bits apart."""
    run, have = board, 1
    while have < length:  # each round can double the length of the runs found
        grow = min(have, length - have)
        run = intersection(run, shift(run, -step * grow))
        have += grow
    return run


def open_lines_lead(
    mine: Board,
    theirs: Board,
    cells: Board,
    length: int,
    steps: tuple[int, ...],
    *,
    exact: bool = False,
) -> jax.Array:
    """Returns `[]` float32 in (-1, 1): the lead towards `length` cells in a row.

    A line without cells of the opponent counts 1 for the first cell in it, four times
    as much for the second, and so on.

    Args:
        mine: cells of the player to evaluate for.
        theirs: cells of the opponent.
        cells: all cells of the board, which keeps its rows apart as for `has_line`.
        length: cells in a line that wins, at least 1.
        steps: directions of the lines, as in `has_line`.
        exact: whether longer lines do not win; a line next to an own cell then does not
            count.
    """
    settings = {"length": length, "steps": steps, "exact": exact}
    own = _open_lines(mine, difference(cells, theirs), **settings)
    lead = own - _open_lines(theirs, difference(cells, mine), **settings)
    return lead / (1 + jnp.abs(lead))


def _open_lines(
    mine: Board, room: Board, *, length: int, steps: tuple[int, ...], exact: bool
) -> jax.Array:
    """Returns `[]` float32, the sum of the counts of the lines within `room`, divided
    by four times the count of a line that lacks one cell."""
    total = jnp.float32(0)
    for step in steps:
        # `lines[k]`: the lines with at least k cells of `mine`, cell by cell.
        empty = difference(mine, mine)
        starts = line_starts(room, length, step)
        if exact:
            starts = difference(
                starts, union(shift(mine, step), shift(mine, -step * length))
            )
        lines = [starts] + [empty] * (length - 1)
        for place in range(length):
            cell = shift(mine, -step * place)
            for number in reversed(range(1, length)):
                one_more = intersection(lines[number - 1], cell)
                lines[number] = union(lines[number], one_more)
        for number in range(1, length):
            # The powers of 4 do not overflow, as integers would with long lines.
            total += 4.0 ** (number - length) * count(lines[number])
    return total


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
    words = jnp.stack([word for board in boards for word in board])
    # Without the barrier XLA computes the boards again for every cell.
    words = jax.lax.optimization_barrier(words).reshape(len(boards), -1)
    word_of_cell = jnp.moveaxis(words[:, cells // WORD_BITS], 0, -1)
    bit = np.uint32(1) << np.asarray(cells % WORD_BITS, np.uint32)
    return word_of_cell & bit[..., None] != 0


def pieces(boards: Sequence[Board], cells: np.ndarray) -> jax.Array:
    """Returns `[H, W]` int8: P where board P has the bit of the cell, else -1.

    Args:
        boards: boards that have no bit in common.
        cells: `[H, W]` int, the bit of each cell.
    """
    is_set = planes(boards, cells)
    numbers = jnp.arange(1, len(boards) + 1, dtype=jnp.int8)
    return (is_set * numbers).sum(axis=-1, dtype=jnp.int8) - jnp.int8(1)


@dataclasses.dataclass(frozen=True)
class Grid:
    """Where the cells of a rectangular board lie in its words.

    Rows follow one another from the top left, with an empty bit after each that keeps
    its end apart from the beginning of the next.

    height: rows.
    width: columns.
    """

    height: int
    width: int

    @property
    def stride(self) -> int:
        """Bits from a cell to the one below it."""
        return self.width + 1

    @property
    def num_bits(self) -> int:
        """Bits of a board."""
        return self.height * self.stride

    @property
    def cells(self) -> np.ndarray:
        """`[H, W]` int, the bit of each cell."""
        rows = self.stride * np.arange(self.height)
        return rows[:, None] + np.arange(self.width)

    @property
    def full(self) -> Board:
        """The board with the bits of all cells set."""
        return constant(self.cells, self.num_bits)

    def cell(self, action: jax.Array) -> Board:
        """Returns the board with the bit of cell `action` (`[]` int32) set.

        Cells are counted row by row from the top left; no bit is set where there is no
        such cell.
        """
        action = jnp.asarray(action).astype(jnp.int32)
        bit = action + action // self.width
        return single(
            jnp.where(action < self.height * self.width, bit, -1), self.num_bits
        )
