"""How boards and pieces look in a terminal, one look for each style of pictures."""

import dataclasses
import string
from collections.abc import Callable

import numpy as np

from azjax.games import Game, rendering

Shape = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of points from -1 to 1


def disc(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns which points are in a disc that almost fills the cell."""
    radius = 0.92 if len(down) < 8 else 0.87
    return down**2 + right**2 <= radius**2


def dot(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns which points are in a small disc."""
    radius = 0.36 if len(down) < 8 else 0.22
    return down**2 + right**2 <= radius**2


def ring(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns which points are on a ring."""
    radius = down**2 + right**2
    return (radius >= 0.5**2) & (radius <= 0.9**2)


def cross(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns which points are on a diagonal cross."""
    is_near = abs(abs(down) - abs(right)) <= 0.26
    return is_near & (np.maximum(abs(down), abs(right)) < 0.84)


def pawn(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns which points are in a head above a body that widens to its foot."""
    head = (down + 0.45) ** 2 + right**2 <= 0.55**2
    body = (abs(down - 0.35) < 0.45) & (abs(right) <= 0.28 + 0.5 * down)
    return head | body


@dataclasses.dataclass(frozen=True)
class Piece:
    """How a kind of piece looks.

    colour: of its shape, and of the letter alone.
    letter: what stands for it in a small cell, and in every cell without a shape.
    marked_letter: the same for the piece that moved last.
    shape: how it is painted in a larger cell.
    sign: two characters on the shape, so that nobody needs the colours.
    sign_colour: of the sign.
    smallest: the smallest cell in which the shape can be recognised (characters).
    """

    colour: int
    letter: str
    marked_letter: str = ""
    shape: Shape | None = None
    sign: str = ""
    sign_colour: int = 0
    smallest: int = 4


@dataclasses.dataclass(frozen=True)
class Look:
    """How a kind of board looks.

    grounds: the colours of the cells, which alternate.
    ink: the colour of what is drawn on an empty cell.
    pieces: by their number.
    mark: the colour that marks the last move.
    mark_is_below: whether it is the cell's colour, not that of a dot on the piece.
    hole: the colour of an empty cell's disc, if it has one.
    has_lines: whether pieces lie on crossing lines.
    edges: of a rhombus the colours of its upper and lower sides, and of the others.
    largest: no cell is wider (characters).
    """

    grounds: tuple[int, int]
    ink: int
    pieces: tuple[Piece, ...]
    mark: int
    mark_is_below: bool = False
    hole: int | None = None
    has_lines: bool = False
    edges: tuple[int, int] | None = None
    largest: int = 12


_BLACK, _WHITE = 0x1D1D1F, 0xFBFAF7
_BLACK_AND_WHITE = (Piece(_BLACK, "●", "◉", disc), Piece(_WHITE, "●", "◉", disc))
_CHEQUERS = (0x93A5B5, 0x6D8196)
_GOLD = 0xB79B3A

_MARKS = Look(
    grounds=(0xF3EFE6, 0xE6DFD0),
    ink=0xA79F8E,
    pieces=(Piece(0x0072B2, "X", "X", cross), Piece(0xD55E00, "O", "O", ring)),
    mark=0xFDE9A8,
    mark_is_below=True,
)
_MEN = Look(
    grounds=_CHEQUERS,
    ink=0x3D4C5A,
    pieces=(
        Piece(0xFFFFFF, "♟", "♟", pawn, smallest=6),
        Piece(0x14181D, "♟", "♟", pawn, smallest=6),
    ),
    mark=_GOLD,
    mark_is_below=True,
)

_LOOKS = {
    rendering.MARKS: _MARKS,
    rendering.DISCS: Look(
        grounds=(0x2A66AD, 0x2A66AD),
        ink=0x7FA9DB,
        pieces=(
            Piece(0xF0E442, "●", "◉", disc, "><", 0x8D7F00),
            Piece(0xD55E00, "○", "◎", disc, "()", 0xFFD9BD),
        ),
        mark=0xFFFFFF,
        hole=0x123A69,
    ),
    rendering.STONES: Look(
        grounds=(0xDCB067, 0xDCB067),
        ink=0x7A5C2E,
        pieces=_BLACK_AND_WHITE,
        mark=0xE5484D,
        has_lines=True,
    ),
    rendering.OTHELLO: Look(
        grounds=(0x5FA87B, 0x559C71),
        ink=0x2F6B49,
        pieces=_BLACK_AND_WHITE,
        mark=0xE5484D,
    ),
    rendering.MEN: _MEN,
    rendering.CHESSMEN: dataclasses.replace(
        _MEN,
        pieces=tuple(
            Piece(colour, man) for colour in (0xFFFFFF, 0x14181D) for man in "♟♞♝♜♛♚"
        ),
        largest=4,  # a letter is lost in a larger cell
    ),
    rendering.HEXAGONS: Look(
        grounds=(0x55616D, 0x55616D),
        ink=0x8D98A3,
        pieces=(
            Piece(0x56B4E9, "●", "◉", disc, "><", 0x0B4F7A),
            Piece(0xF2B632, "○", "◎", disc, "()", 0x7A5600),
        ),
        mark=0xFFFFFF,
        hole=0x36414C,
        edges=(0x56B4E9, 0xF2B632),
    ),
}


def look_of(game: Game) -> Look:
    """Returns how a game looks; pieces that no style knows are their letters."""
    look = _LOOKS.get(game.style, _MARKS)
    if len(game.pieces) == len(look.pieces):
        return look
    colours = (0x0072B2, 0xD55E00)
    letters = tuple(
        Piece(colours[2 * number >= len(game.pieces)], letter)
        for number, letter in enumerate(game.pieces)
        if letter in string.printable
    )
    return dataclasses.replace(_MARKS, pieces=letters, largest=4)
