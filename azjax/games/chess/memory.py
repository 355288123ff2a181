"""Which chess positions occurred since the last capture or move of a pawn.

Before it none of them can have occurred.
"""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.chess.position import Position

NUM_ROWS = 100  # half-moves after which the game is drawn

# Empty if repetitions do not count, otherwise `[100, 2]` uint32: row `c` is the hash of
# the position at which the halfmove clock last was `c`.
Memory = jax.Array | tuple[()]


def _random_words(*shape: int) -> np.ndarray:
    words = np.random.default_rng(0).integers(2**32, size=shape, dtype=np.uint32)
    words.setflags(write=False)
    return words


# Zobrist's numbers of 64 bits: for each bit of the six boards, of the castling rights,
# and for each file on which a pawn may be taken in passing.
_KEYS = _random_words(6 * 64 + 4 + 8, 2)


def empty_memory() -> jax.Array:
    """Returns a memory of no position."""
    return jnp.zeros((NUM_ROWS, 2), jnp.uint32)


def remember(
    memory: Memory, position: Position, halfmove_clock: jax.Array
) -> jax.Array:
    """Returns the memory with the latest position in it."""
    words = jnp.concatenate(
        [
            position.pawns,
            position.knights,
            position.diagonals,
            position.straights,
            position.kings,
            position.mine,
        ]
    )
    bits = words[:, None] >> np.arange(32, dtype=np.uint32) & 1
    is_set = jnp.concatenate(
        [
            bits.reshape(-1) == 1,
            position.castling >> np.arange(4, dtype=np.uint8) & 1 == 1,
            position.en_passant == np.arange(8),
        ]
    )
    keys = jnp.where(is_set[:, None], _KEYS, np.uint32(0))
    is_now = np.arange(NUM_ROWS)[:, None] == halfmove_clock
    return jnp.where(is_now, jnp.bitwise_xor.reduce(keys, axis=0), jnp.asarray(memory))


def count_earlier(memory: Memory, halfmove_clock: jax.Array) -> jax.Array:
    """Returns `[]` int32, how often the latest position occurred before."""
    row, now = np.arange(NUM_ROWS), halfmove_clock.astype(jnp.int32)
    hashes = jnp.asarray(memory)
    is_now = (row == now)[:, None]
    latest = jnp.where(is_now, hashes, np.uint32(0)).sum(axis=0, dtype=jnp.uint32)
    # Boards are turned: only every other position is seen by the same player.
    is_earlier = (row < now) & (row % 2 == now % 2)
    return (is_earlier & (hashes == latest).all(axis=1)).sum()
