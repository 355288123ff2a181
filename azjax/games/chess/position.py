"""Chess positions, and moves on them.

The board is always turned so that the player to move plays up: square 0 is the top left
corner as that player sees it, squares are counted row by row. The files run from left
to right for White and for Black, so that Black's board is White's with the order of the
rows reversed.

A set of squares is two uint32 words: square `s` is bit `s % 32` of word `s // 32`. The
words are one array, unlike those of `bitboard`: the lines of chess run through both,
and XLA would otherwise find each line twice, once for each of the words.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

NUM_SQUARES = 64
SQUARES = np.arange(NUM_SQUARES).reshape(8, 8)

# (down, right), clockwise from straight ahead.
DIRECTIONS = np.array(
    [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
)
JUMPS = np.array(
    [(-2, 1), (-1, 2), (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1)]
)
AHEAD, AHEAD_RIGHT, RIGHT, LEFT, AHEAD_LEFT = 0, 1, 2, 6, 7
PAWN_DIRECTIONS = np.array([AHEAD_LEFT, AHEAD, AHEAD_RIGHT])

# Planes, the ways to move: the 8 directions at distance 1, at distance 2, ... 7; the
# jumps; the pawn's three directions where it becomes a knight, a bishop, a rook.
FIRST_JUMP = 56
FIRST_UNDER_PROMOTION = 64
UNDER_PROMOTIONS = "nbr"
NUM_PLANES = 73
NUM_ACTIONS = NUM_SQUARES * NUM_PLANES
# (down, right) of each plane.
OFFSETS = np.concatenate(
    [
        (DIRECTIONS * np.arange(1, 8)[:, None, None]).reshape(56, 2),
        JUMPS,
        np.tile(DIRECTIONS[PAWN_DIRECTIONS], (3, 1)),
    ]
)


def words_of(cells: object) -> np.ndarray:
    """Returns `[2]` uint32, the set of the squares in an array of any shape."""
    bits = sum(1 << int(cell) for cell in np.asarray(cells).flat)
    return np.array([bits & 0xFFFFFFFF, bits >> 32], np.uint32)


def cells_of(words: Sequence[jax.Array] | jax.Array) -> jax.Array:
    """Returns `[64, N]` bool: which squares are in each of N sets, whose two words are
    `[N]` uint32 each."""
    bits = np.arange(32, dtype=np.uint32)[:, None]
    return jnp.concatenate([word >> bits & 1 == 1 for word in words])


_DARK = words_of(SQUARES[SQUARES // 8 % 2 != SQUARES % 2])
# Castling is lost when one of these squares is left or entered, right by right.
_CASTLING_SQUARES = [words_of(cells) for cells in ([60, 63], [60, 56], [4, 7], [4, 0])]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Position:
    """The pieces on the board from the view of the player to move, 50 bytes.

    Sets of squares are `[2]` uint32.

    pawns, knights, kings: these pieces of both players.
    diagonals: bishops and queens.
    straights: rooks and queens.
    mine: all pieces of the player to move.
    castling: `[]` uint8; bits 0 and 1, the player to move may still castle to the right
        and to the left; bits 2 and 3, the opponent.
    en_passant: `[]` int8, the file on which a pawn may be taken in passing, else -1.
    """

    pawns: jax.Array
    knights: jax.Array
    diagonals: jax.Array
    straights: jax.Array
    kings: jax.Array
    mine: jax.Array
    castling: jax.Array
    en_passant: jax.Array

    @property
    def occupied(self) -> jax.Array:
        """The squares that are not empty."""
        return self.pawns | self.knights | self.diagonals | self.straights | self.kings

    @property
    def kinds(self) -> tuple[jax.Array, ...]:
        """Pawns, knights, bishops, rooks, queens and kings of both players."""
        queens = self.diagonals & self.straights
        bishops, rooks = self.diagonals & ~queens, self.straights & ~queens
        return (self.pawns, self.knights, bishops, rooks, queens, self.kings)


def square(number: jax.Array) -> jax.Array:
    """Returns `[2]` uint32, the set of square `number` (`[]` int), none if negative."""
    bit = jnp.uint32(1) << (number % 32).astype(jnp.uint32)
    return jnp.where(number // 32 == np.arange(2), bit, np.uint32(0))


def passing_square(en_passant: jax.Array, row: int = 2) -> jax.Array:
    """Returns the square of file `en_passant` in `row`, none if it is -1.

    Row 2 is where the pawn that takes in passing goes.
    """
    return square(jnp.where(en_passant < 0, -1, 8 * row + en_passant))


def turned(position: Position) -> Position:
    """Returns the position with the opponent to move, as the opponent sees it."""
    castling = position.castling
    return Position(
        pawns=_reverse_rows(position.pawns),
        knights=_reverse_rows(position.knights),
        diagonals=_reverse_rows(position.diagonals),
        straights=_reverse_rows(position.straights),
        kings=_reverse_rows(position.kings),
        mine=_reverse_rows(position.occupied & ~position.mine),
        castling=castling >> 2 | castling << 2 & 12,
        en_passant=position.en_passant,
    )


def _reverse_rows(board: jax.Array) -> jax.Array:
    word, even_rows = board[::-1], np.uint32(0x00FF00FF)
    word = (word >> np.uint32(8)) & even_rows | (word & even_rows) << np.uint32(8)
    return word >> np.uint32(16) | word << np.uint32(16)


def play(position: Position, action: jax.Array) -> tuple[Position, jax.Array]:
    """Makes a legal move.

    Args:
        position: the position.
        action: `[]` int32, `NUM_PLANES * square + plane`.

    Returns:
        The position after it, as the opponent sees it, with `en_passant` set after
        every double step; and `[]` bool, whether a pawn moved or a piece was captured.
    """
    start, plane = action // NUM_PLANES, action % NUM_PLANES
    step = jnp.asarray(OFFSETS @ [8, 1])[plane]
    end = start + step
    source, target = square(start), square(end)
    is_pawn, is_king = (
        _overlap(position.pawns, source),
        _overlap(position.kings, source),
    )
    is_capture = _overlap(position.occupied, target)
    is_promotion = is_pawn & (end < 8)
    becomes = jnp.where(
        plane < FIRST_UNDER_PROMOTION,
        len(UNDER_PROMOTIONS),
        (plane - FIRST_UNDER_PROMOTION) // len(PAWN_DIRECTIONS),
    )
    takes_in_passing = is_pawn & ~is_capture & (step % 8 != 0)
    passed = square(jnp.where(takes_in_passing, end + 8, -1))
    castles = is_king & (abs(step) == 2)
    rook_source = square(jnp.where(castles, jnp.where(step > 0, 63, 56), -1))
    rook_target = square(jnp.where(castles, jnp.where(step > 0, 61, 59), -1))
    gone = source | target | passed | rook_source

    def land(board, comes_as):
        comes = _overlap(board, source) & ~is_promotion | is_promotion & comes_as
        return board & ~gone | jnp.where(comes, target, np.uint32(0))

    castling = position.castling
    for right, cells in enumerate(_CASTLING_SQUARES):
        is_lost = _overlap(source | target, cells)
        castling = castling & ~(is_lost.astype(jnp.uint8) << right)
    after = Position(
        pawns=land(position.pawns, False),
        knights=land(position.knights, becomes == 0),
        diagonals=land(position.diagonals, (becomes == 1) | (becomes == 3)),
        straights=land(position.straights, becomes >= 2) | rook_target,
        kings=land(position.kings, False),
        mine=position.mine & ~gone | target | rook_target,
        castling=castling,
        en_passant=jnp.where(is_pawn & (step == -16), start % 8, -1).astype(jnp.int8),
    )
    return turned(after), is_pawn | is_capture


def _overlap(board: jax.Array, other: jax.Array | np.ndarray) -> jax.Array:
    return ((board & other) != 0).any()


def is_insufficient(position: Position) -> jax.Array:
    """Returns `[]` bool: no sequence of moves can mate either king.

    True if the other pieces are bishops on squares of one color, or one knight.
    """
    bishops = position.diagonals
    is_one_color = ~_overlap(bishops, _DARK) | ~_overlap(bishops, ~_DARK)
    no_knights = (position.knights == 0).all()
    few_pieces = jax.lax.population_count(position.occupied).sum() <= 3
    return ((position.pawns | position.straights) == 0).all() & (
        few_pieces | is_one_color & no_knights
    )


NUM_ROWS = 100  # half-moves after which the game is drawn
# Empty if repetitions do not count, otherwise `[100, 2]` uint32: row `c` is the hash of
# the position at which the halfmove clock last was `c`.
Memory = jax.Array | tuple[()]

# Zobrist's numbers of 64 bits: for each bit of the six boards, of the castling rights,
# and for each file on which a pawn may be taken in passing.
_KEYS = np.random.default_rng(0).integers(2**32, size=(396, 2), dtype=np.uint32)


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
    """Returns `[]` int32, how often the latest position occurred before, which can only
    be since the last capture or move of a pawn."""
    row, now = np.arange(NUM_ROWS), halfmove_clock.astype(jnp.int32)
    hashes = jnp.asarray(memory)
    is_now = (row == now)[:, None]
    latest = jnp.where(is_now, hashes, np.uint32(0)).sum(axis=0, dtype=jnp.uint32)
    # Boards are turned: only every other position is seen by the same player.
    is_earlier = (row < now) & (row % 2 == now % 2)
    return (is_earlier & (hashes == latest).all(axis=1)).sum()
