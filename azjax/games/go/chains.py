"""Chains, liberties, regions and repetitions of a Go board, on bitboards."""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azjax.devices import target_platform
from azjax.games import bitboard
from azjax.games.core import select

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
        # P points of a shortest path have 4P sides. All but 2(P - 1) of these face
        # other points, with 4 sides each, or the edge of the board.
        height, width = grid.height, grid.width
        self._longest_path = (2 * height * width + height + width - 1) // 3
        cells = grid.cells.ravel()
        size = next(n for n in itertools.count() if math.comb(n, n // 2) >= cells.size)
        self.codes = np.zeros((size, cells.size), bool)
        ways = itertools.combinations(range(size), size // 2)
        for point, bits in enumerate(itertools.islice(ways, cells.size)):
            self.codes[list(bits), point] = True
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
        flooded = jnp.stack(self._flood(near, (empty,)), axis=1)
        by_black, by_white = (tuple(words) for words in flooded)
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

        return bitboard.flood(start, spread, self._longest_path - 1)


def _stack(boards: Sequence[bitboard.Board]) -> bitboard.Board:
    """Returns one board whose words have an axis for the `boards`."""
    return tuple(jnp.stack(words) for words in zip(*boards, strict=True))


def _more_set_than(boards: bitboard.Board, limit: int) -> bitboard.Board:
    """Returns the bits that are set in more than `limit` of the boards along the axis
    of the words."""
    if target_platform() == "cpu":
        # Row i: the bits that are set in at least i of the boards scanned so far.
        none = jnp.zeros((limit + 2, len(boards)), jnp.uint32)

        def add(at_least, board):
            return at_least.at[1:].set(at_least[1:] | at_least[:-1] & board), None

        at_least = none.at[0].set(~jnp.uint32(0))
        return tuple(jax.lax.scan(add, at_least, jnp.stack(boards, axis=1))[0][-1])
    # The same without a loop, whose steps are slow on accelerators. Entry i: the bits
    # that are set in more than i boards.
    first, *others = zip(*boards, strict=True)
    more_than = [first] + [bitboard.difference(first, first)] * limit
    for board in others:
        added = [board, *(bitboard.intersection(board, have) for have in more_than)]
        more_than = list(map(bitboard.union, more_than, added))
    return more_than[-1]


Hash = tuple[jax.Array, ...]  # the low and the high 32 bits, uint32


class BoardHashes:
    """Positional superko: hashes of the boards of a game (Zobrist, 1970); that of the
    empty board is zero."""

    def __init__(self, chains: Chains):
        self._chains = chains
        num_points = chains.grid.cells.size
        generator = np.random.default_rng(1970)
        # `[2, 2, num_points]` uint32: by half of the hash, color and point.
        self._keys = generator.integers(2**32, size=(2, 2, num_points), dtype=np.uint32)

    def add(
        self, hashes: Hash, num_moves: jax.Array, stones: Stones
    ) -> tuple[Hash, jax.Array]:
        """Adds the hash of a new board.

        Args:
            hashes: two `[max_moves]` uint32, the halves of the hashes after each move.
            num_moves: `[]` int16; moves made before the new board.
            stones: stones of the new board.

        Returns:
            The new hashes, and `[]` bool, whether the board was among the old ones.
        """
        now = self._hash(stones)
        is_next = np.arange(hashes[0].size) == num_moves
        low, high = (
            jnp.where(is_next, half, old) for half, old in zip(now, hashes, strict=True)
        )
        return (low, high), _is_among(now, hashes)

    def repetitions(
        self,
        hashes: Hash,
        stones: Stones,
        liberty_codes: bitboard.Board,
        current_player: jax.Array,
    ) -> jax.Array:
        """Returns `[num_points]` bool: whether a stone there repeats an earlier board.

        Args:
            hashes: hashes of the earlier boards, as in `add`.
            stones: stones of the current board.
            liberty_codes: result of `Chains.liberty_codes`.
            current_player: `[]` int8; the player to move.
        """
        cells = self._chains.grid.cells.ravel()
        bits = jax.vmap(lambda *words: bitboard.cells_set(words, cells))(*liberty_codes)
        powers = 1 << np.arange(len(self._chains.codes))
        numbers = powers @ bits
        is_white = current_player == 1
        theirs = select(is_white, stones[0], stones[1])
        # Stone s is captured at point p if p is the only liberty of its chain.
        is_captured = bitboard.cells_set(theirs, cells) & (
            numbers == (powers @ self._chains.codes)[:, None]
        )
        after = []
        for half, keys in zip(self._hash(stones), self._keys, strict=True):
            mine, other = select(is_white, (keys[1], keys[0]), (keys[0], keys[1]))
            after.append(half ^ mine ^ _xor(jnp.where(is_captured, other, 0)))
        return jax.vmap(_is_among, (0, None))(tuple(after), hashes)

    def _hash(self, stones: Stones) -> Hash:
        """Returns the halves of a board's hash, `[]` uint32."""
        is_set = bitboard.planes(stones, self._chains.grid.cells).reshape(-1, 2).T
        low, high = (_xor(jnp.where(is_set, keys, 0).ravel()) for keys in self._keys)
        return low, high


def _is_among(board_hash: Hash, hashes: Hash) -> jax.Array:
    """Returns `[]` bool: whether a hash (halves `[]`) is one of N (halves `[N]`)."""
    low, high = (half == old for half, old in zip(board_hash, hashes, strict=True))
    return (low & high).any()


def _xor(numbers: jax.Array) -> jax.Array:
    """Returns the xor along the last axis."""
    return jax.lax.reduce_xor(numbers, (numbers.ndim - 1,))
