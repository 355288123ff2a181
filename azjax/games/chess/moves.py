"""Chess moves, found for all pieces at once.

For each of the 73 ways to move the generator finds the squares from which that move is
legal. It never asks where a piece can go, but lets every square look at the one next to
it in each of the eight directions: here sets of squares are `[2, 1]` uint32, and
`[2, 8]` where there is one for each direction.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.chess.position import (
    AHEAD,
    AHEAD_LEFT,
    AHEAD_RIGHT,
    DIRECTIONS,
    FIRST_JUMP,
    JUMPS,
    LEFT,
    NUM_PLANES,
    NUM_SQUARES,
    PAWN_DIRECTIONS,
    RIGHT,
    SQUARES,
    Position,
    passing_square,
    words_of,
)

_ALL, _NONE = np.uint32(0xFFFFFFFF), np.uint32(0)
_SEVENTH_ROW, _SECOND_ROW = words_of(SQUARES[1])[:, None], words_of(SQUARES[6])[:, None]
# Castling to the right and to the left: what must be empty, and not attacked.
_MUST_BE_EMPTY = [words_of(cells)[:, None] for cells in ([61, 62], [57, 58, 59])]
_MUST_BE_SAFE = [words_of(cells)[:, None] for cells in ([60, 61, 62], [58, 59, 60])]


def _only(*directions: int) -> np.ndarray:
    """Returns `[8]` uint32: all bits at these directions, none at the others."""
    return _ALL * np.isin(np.arange(8), directions).astype(np.uint32)


def _boards(*boards: int) -> np.ndarray:
    """Returns `[4, 1, 1]` uint32: all bits in these of four boards, none in others."""
    return _ALL * np.isin(np.arange(4), boards).astype(np.uint32)[:, None, None]


_DIAGONAL, _STRAIGHT = _only(1, 3, 5, 7), _only(0, 2, 4, 6)
_CAPTURE = _only(AHEAD_LEFT, AHEAD_RIGHT)
# Of bishops, rooks and queens.
_LINE_DIRECTIONS = np.stack([_DIAGONAL, _STRAIGHT, _DIAGONAL | _STRAIGHT])[:, None]


class Moves(NamedTuple):
    """The legal moves.

    planes: two words, `[73]` uint32 each: the squares from which a piece may move in
        this way.
    in_check: `[]` bool.
    takes_en_passant: `[]` bool, whether a pawn may be taken in passing.
    """

    planes: tuple[jax.Array, jax.Array]
    in_check: jax.Array
    takes_en_passant: jax.Array


class _Glance(NamedTuple):
    """How to move sets so that each square shows what another one has.

    A set of 64 bits is rotated down by `turn` bits after its words have been swapped
    where `swap`; `inside` are the squares whose other square is on the board.
    """

    swap: np.ndarray
    turn: np.ndarray
    inside: np.ndarray


def _glance(offsets: np.ndarray) -> _Glance:
    """Returns how to look from every square at those at `offsets`, `[..., D, 2]`."""
    steps = offsets @ [8, 1] % NUM_SQUARES
    row = np.arange(8)[:, None] + offsets[..., None, None, 0]
    column = np.arange(8) + offsets[..., None, None, 1]
    inside = (row >= 0) & (row < 8) & (column >= 0) & (column < 8)
    bits = inside.reshape(*offsets.shape[:-1], 2, 32).astype(np.uint32)
    words = (bits << np.arange(32, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)
    return _Glance(
        swap=(steps >= 32)[..., None, :],
        turn=(steps % 32).astype(np.uint32)[..., None, :],
        inside=np.swapaxes(words, -1, -2),
    )


_NEXT, _BEHIND, _JUMP = _glance(DIRECTIONS), _glance(-DIRECTIONS), _glance(JUMPS)
_LEFT, _RIGHT, _AHEAD, _TWO_AHEAD = (
    _glance(np.array([offset])) for offset in ((0, -1), (0, 1), (-1, 0), (-2, 0))
)
# For the four boards of `_lines`: from the squares back to the king, on to the enemy.
_LINES = _glance(DIRECTIONS * np.array([-1, 1, -1, -1])[:, None, None])


def _look(board: jax.Array, glance: _Glance) -> jax.Array:
    """Returns the squares whose other square is in `board`."""
    swapped = board[..., ::-1, :]
    here = jnp.where(glance.swap, swapped, board)
    there = jnp.where(glance.swap, board, swapped)
    up = np.uint32(32) - glance.turn
    return (here >> glance.turn | there << up) & glance.inside


def _any_direction(board: jax.Array) -> jax.Array:
    """Returns the `[..., 2, 1]` union over the directions."""
    return jnp.bitwise_or.reduce(board, axis=-1, keepdims=True)


def _lines(
    king: jax.Array,
    their_sliders: jax.Array,
    empty: jax.Array,
    en_passant: jax.Array,
    capturers: tuple[jax.Array, jax.Array],
) -> jax.Array:
    """Returns what is reached along lines of empty squares, the first other one too.

    Args:
        king: the king of the player to move.
        their_sliders: `[2, 8]`, the enemies that move in this direction.
        empty: the empty squares.
        en_passant: as in `Position`.
        capturers: the pawns that may take it, from the left and from the right.

    Returns:
        `[4, 2, 8]`: the squares that lie from the king in this direction; those from
        which an enemy lies in this direction, also beyond the king, who cannot hide
        behind himself; those from the king after each of the captures in passing.
    """
    passing = passing_square(en_passant)[:, None]
    passed = passing_square(en_passant, row=3)[:, None]
    is_open = (
        empty & ~(passing & _boards(2, 3))
        | king & _boards(1)
        | passed & _boards(2, 3)
        | capturers[0] & _boards(2)
        | capturers[1] & _boards(3)
    )
    seen = king & _boards(0, 2, 3) | their_sliders & _boards(1)
    return _lengthen(_look(seen, _LINES), is_open, _LINES)


def _lengthen(lines: jax.Array, is_open: jax.Array, glance: _Glance) -> jax.Array:
    """Makes lines longer, square by square, until they meet what is not open.

    A loop, because XLA computes again and again what it does not have to store.
    """

    def one_square(_, carry: tuple[jax.Array, jax.Array]):
        lines, is_open = carry
        return lines | _look(lines & is_open, glance), is_open

    return jax.lax.fori_loop(0, 6, one_square, (lines, is_open))[0]


def _unless(danger: jax.Array, board: jax.Array) -> jax.Array:
    """Returns `board` if the set `danger` is empty, else no squares."""
    return jnp.where((danger == 0).all(), board, _NONE)


@jax.jit
def generate(position: Position) -> Moves:
    """Finds the legal moves; jitted because op by op it is hundreds of programs."""
    occupied, mine = position.occupied[:, None], position.mine[:, None]
    kings, knights = position.kings[:, None], position.knights[:, None]
    straights, diagonals = position.straights[:, None], position.diagonals[:, None]
    empty, theirs = ~occupied, occupied & ~mine
    king, pawns = kings & mine, position.pawns[:, None] & mine
    sliders = diagonals & _DIAGONAL | straights & _STRAIGHT
    their_sliders, their_knights = sliders & theirs, knights & theirs
    their_pawns = position.pawns[:, None] & theirs

    passed = passing_square(position.en_passant, row=3)[:, None]
    from_left, from_right = pawns & _look(passed, _RIGHT), pawns & _look(passed, _LEFT)
    king_lines, their_lines, left_lines, right_lines = _lines(
        king, their_sliders, empty, position.en_passant, (from_left, from_right)
    )

    near_checkers = _any_direction(
        _look(king, _JUMP) & their_knights
        | _look(king, _BEHIND) & _CAPTURE & their_pawns
    )
    num_checkers, meets_check = _answers(near_checkers, king_lines, their_sliders)
    # The king must not enter these squares.
    neighbors = kings & theirs | their_pawns & _CAPTURE
    attacked = _any_direction(
        their_lines | _look(neighbors, _NEXT) | _look(their_knights, _JUMP)
    )

    # A piece between the king and an enemy's line stays on that line.
    pinned = king_lines & their_lines & mine
    is_pinned = _any_direction(pinned)
    may_go = ~is_pinned | pinned | jnp.roll(pinned, 4, axis=-1)

    targets = meets_check & ~mine
    pawn_targets = targets & (empty & _only(AHEAD) | theirs & _CAPTURE)
    # Two pawns leave their squares at once: no pin tells what that opens.
    other_checkers = near_checkers & ~passed
    passing_left = _unless(left_lines & their_sliders | other_checkers, from_left)
    passing_right = _unless(right_lines & their_sliders | other_checkers, from_right)
    pawn_moves = (
        pawns & may_go & _look(pawn_targets, _NEXT)
        | passing_left & _only(AHEAD_RIGHT)
        | passing_right & _only(AHEAD_LEFT)
    )
    double_steps = pawns & may_go & _SECOND_ROW & _only(AHEAD)
    double_steps &= _look(empty, _AHEAD) & _look(empty & targets, _TWO_AHEAD)
    # The planes without the pieces that move along lines, eight at a time.
    others = [
        pawn_moves | king & _look(~mine & ~attacked, _NEXT),
        double_steps | _castling(position.castling, king, occupied, attacked),
        *[jnp.zeros((2, 8), jnp.uint32)] * (FIRST_JUMP // 8 - 2),
        knights & mine & ~is_pinned & _look(targets, _JUMP),
        *_promotions(pawn_moves),
    ]
    return Moves(
        planes=_add_lines(sliders & mine & may_go, targets, empty, jnp.stack(others)),
        in_check=num_checkers > 0,
        takes_en_passant=((passing_left | passing_right) != 0).any(),
    )


@jax.jit
def attacked(position: Position) -> jax.Array:
    """Returns the squares that each kind of piece attacks, `[2, 6, 2]` uint32.

    First those of the player to move, then the opponent's; the kinds are ordered as in
    `Position.kinds`. A piece attacks the squares that it could move to if they held an
    enemy, whether or not that would expose its king (FIDE, article 3.1.2).
    """
    sides = jnp.stack([position.mine, position.occupied & ~position.mine])
    kinds = sides[:, None, :, None] & jnp.stack(position.kinds)[:, :, None]
    pawns, knights, kings = kinds[:, :1], kinds[:, 1:2], kinds[:, 5:]
    lines = _look(kinds[:, 2:5] & _LINE_DIRECTIONS, _NEXT)
    seen = [
        jnp.stack([_look(pawns[0], _BEHIND), _look(pawns[1], _NEXT)]) & _CAPTURE,
        _look(knights, _JUMP),
        _lengthen(lines, ~position.occupied[:, None], _NEXT),
        _look(kings, _NEXT),
    ]
    return jnp.concatenate([_any_direction(part) for part in seen], axis=1)[..., 0]


def _answers(
    near_checkers: jax.Array, king_lines: jax.Array, their_sliders: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns the number of checkers, and the squares on which a piece other than the
    king meets the check: all without a check, none against two checkers.

    Args:
        near_checkers: the pawns and knights that give check.
        king_lines: `[2, 8]`, the squares that lie from the king in this direction.
        their_sliders: `[2, 8]`, the enemies that move in this direction.
    """
    far_checkers = king_lines & their_sliders
    is_checked_from = (far_checkers != 0).any(axis=0)
    between = _any_direction(jnp.where(is_checked_from, king_lines, _NONE))
    checkers = near_checkers | _any_direction(far_checkers)
    num_checkers = jax.lax.population_count(checkers).sum()
    against_one = jnp.where(num_checkers == 1, near_checkers | between, _NONE)
    return num_checkers, jnp.where(num_checkers == 0, _ALL, against_one)


def _castling(
    rights: jax.Array, king: jax.Array, occupied: jax.Array, attacked: jax.Array
) -> jax.Array:
    """Returns `[2, 8]`, the king where it may castle in this direction; `rights` is
    `Position.castling`."""
    right, left = (
        _unless(
            occupied & _MUST_BE_EMPTY[side] | attacked & _MUST_BE_SAFE[side],
            jnp.where(rights >> side & 1 == 1, king, _NONE),
        )
        for side in (0, 1)
    )
    return right & _only(RIGHT) | left & _only(LEFT)


def _promotions(pawn_moves: jax.Array) -> list[jax.Array]:
    """Returns two rows of planes, `[2, 8]` each: the pawn moves to the last row, for
    three pieces and three directions; the other planes are empty."""
    moves = pawn_moves & _SEVENTH_ROW
    moves = [moves[:, direction : direction + 1] for direction in PAWN_DIRECTIONS]
    planes = jnp.concatenate([*moves * 3, jnp.zeros((2, 7), jnp.uint32)], axis=1)
    return [planes[:, :8], planes[:, 8:]]


def _add_lines(
    sliders: jax.Array, targets: jax.Array, empty: jax.Array, others: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns the planes as two words, `[73]` each.

    Args:
        sliders: `[2, 8]`, the pieces that may move in this direction.
        targets: squares to which they may move.
        empty: the empty squares.
        others: `[10, 2, 8]`, what else is in the planes.
    """

    planes = (jnp.zeros(others.shape[::2], jnp.uint32),) * 2
    carry = (_look(targets, _NEXT), sliders, empty, others, planes)
    # After seven rounds every direction has left the board.
    low, high = jax.lax.fori_loop(0, len(others), _add_distance, carry)[-1]
    return low.reshape(-1)[:NUM_PLANES], high.reshape(-1)[:NUM_PLANES]


def _add_distance(row: jax.Array, carry: tuple) -> tuple:
    """Adds the moves to the targets that are seen, and looks one square farther."""
    sees_target, sliders, empty, others, planes = carry
    words = sliders & sees_target | others[row]
    planes = tuple(
        jax.lax.dynamic_update_index_in_dim(plane, word, row, axis=0)
        for plane, word in zip(planes, words, strict=True)
    )
    return _look(sees_target & empty, _NEXT), sliders, empty, others, planes
