"""Positional superko: hashes of all boards of a game (Zobrist, 1970)."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import bitboard
from azjax.games.core import select
from azjax.games.go.chains import Chains, Stones

Hash = tuple[jax.Array, ...]  # the low and the high 32 bits, uint32


class BoardHashes:
    """Hashes of the boards of one size. The hash of the empty board is zero."""

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
