"""Chains, liberties and regions of a Go board, computed on bitboards."""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard

# Steps of a flood between two tests of whether it has ended.
STEPS_PER_TEST = 2

Stones = tuple[bitboard.Board, bitboard.Board]


class Chains:
    """Chains and regions on a grid.

    grid: the points of the board as bits.
    codes: `[J, num_points]` bool; a code of J bits for each point. All codes have
        J // 2 bits set and no two are equal, so the union of the codes of a chain's
        liberties has more than J // 2 bits set if and only if it has several liberties.
    """

    def __init__(self, grid: bitboard.Grid):
        self.grid = grid
        self.codes = _make_codes(grid.cells.size)
        cells = grid.cells.ravel()
        self._code_boards = [
            bitboard.constant(cells[code], grid.num_bits) for code in self.codes
        ]

    def neighbors(self, board: bitboard.Board) -> bitboard.Board:
        """Returns the points adjacent to those of `board`, and some bits off the
        board."""
        steps = (1, -1, self.grid.stride, -self.grid.stride)
        return bitboard.union(*(bitboard.shift(board, step) for step in steps))

    def with_liberty_in(self, points: bitboard.Board, stones: Stones) -> bitboard.Board:
        """Returns the stones of the chains that have a liberty among `points`, whose
        words may have an axis for several sets of points."""
        occupied = bitboard.union(*stones)
        liberties = bitboard.difference(points, occupied)
        near = bitboard.intersection(occupied, self.neighbors(liberties))
        return self._flood(near, stones)

    def liberty_codes(self, stones: Stones) -> bitboard.Board:
        """Returns J boards, along the axis of the words: for each stone the union of
        the codes of its chain's liberties."""
        return self.with_liberty_in(_stack(self._code_boards), stones)

    def with_several_liberties(self, liberty_codes: bitboard.Board) -> bitboard.Board:
        """Returns the stones whose chains have at least two liberties.

        Args:
            liberty_codes: result of `liberty_codes`.
        """
        return _more_set_than(liberty_codes, len(self.codes) // 2)

    def areas(self, stones: Stones) -> Stones:
        """Returns each player's stones with the empty points that only they reach."""
        black, white = stones
        empty = bitboard.difference(self.grid.full, bitboard.union(black, white))
        near = bitboard.intersection(empty, self.neighbors(_stack(stones)))
        by_black, by_white = _unstack(self._flood(near, (empty,)))
        return (
            bitboard.union(black, bitboard.difference(by_black, by_white)),
            bitboard.union(white, bitboard.difference(by_white, by_black)),
        )

    def _flood(
        self, start: bitboard.Board, kinds: Sequence[bitboard.Board]
    ) -> bitboard.Board:
        """Returns the points that are connected to those of `start`.

        Args:
            start: points of any of the `kinds`; its words may have an axis for several
                boards, each flooded separately.
            kinds: neighbors are connected if they are in the same one of these.
        """
        steps = (1, self.grid.stride)
        # For each step, the points from which it leads to a connected one.
        links = [
            bitboard.union(
                *(
                    bitboard.intersection(kind, bitboard.shift(kind, -step))
                    for kind in kinds
                )
            )
            for step in steps
        ]

        def spread(board):
            reached = [board]
            for step, link in zip(steps, links, strict=True):
                forth = bitboard.shift(bitboard.intersection(board, link), step)
                back = bitboard.intersection(bitboard.shift(board, -step), link)
                reached += [forth, back]
            return bitboard.union(*reached)

        def num_points(board):
            return bitboard.count(board).sum(dtype=jnp.int32)

        def advance(carry):
            board, _ = carry
            grown = board
            for _ in range(STEPS_PER_TEST):
                grown = spread(grown)
            return grown, num_points(board)

        def has_grown(carry):
            board, count_before = carry
            return num_points(board) != count_before

        return jax.lax.while_loop(has_grown, advance, (start, jnp.int32(-1)))[0]


def _make_codes(num_points: int) -> np.ndarray:
    """Returns `[J, num_points]` bool, the codes of `Chains`."""
    num_bits = next(n for n in itertools.count() if math.comb(n, n // 2) >= num_points)
    codes = np.zeros((num_bits, num_points), bool)
    ways = itertools.combinations(range(num_bits), num_bits // 2)
    for point, bits in enumerate(itertools.islice(ways, num_points)):
        codes[list(bits), point] = True
    return codes


def _stack(boards: Sequence[bitboard.Board]) -> bitboard.Board:
    """Returns one board whose words have an axis for the `boards`."""
    return tuple(jnp.stack(words) for words in zip(*boards, strict=True))


def _unstack(board: bitboard.Board) -> list[bitboard.Board]:
    """Returns the boards along the axis of the words."""
    return [tuple(words) for words in jnp.stack(board, axis=1)]


def _more_set_than(boards: bitboard.Board, limit: int) -> bitboard.Board:
    """Returns the bits that are set in more than `limit` of the boards along the axis
    of the words."""
    # Row i: the bits that are set in at least i of the boards scanned so far.
    at_least = jnp.zeros((limit + 2, len(boards)), jnp.uint32).at[0].set(~jnp.uint32(0))

    def add(at_least, board):
        return at_least.at[1:].set(at_least[1:] | at_least[:-1] & board), None

    return tuple(jax.lax.scan(add, at_least, jnp.stack(boards, axis=1))[0][-1])
