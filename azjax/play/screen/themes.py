"""Themes of boards and pieces in a terminal, one for each picture style."""

import dataclasses
import string
from collections.abc import Callable

import numpy as np

from azjax.games import Game, rendering

# Maps coordinates in [-1, 1], downwards and to the right, to a mask.
Shape = Callable[[np.ndarray, np.ndarray], np.ndarray]


def disc(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns the mask of a disc that almost fills the cell."""
    radius = 0.92 if len(down) < 8 else 0.87
    return down**2 + right**2 <= radius**2


def dot(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns the mask of a small disc."""
    radius = 0.36 if len(down) < 8 else 0.22
    return down**2 + right**2 <= radius**2


def ring(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns the mask of a ring."""
    radius = down**2 + right**2
    return (radius >= 0.5**2) & (radius <= 0.9**2)


def cross(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns the mask of a diagonal cross."""
    is_near = abs(abs(down) - abs(right)) <= 0.26
    return is_near & (np.maximum(abs(down), abs(right)) < 0.84)


def pawn(down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns the mask of a pawn: a head above a body that widens downwards."""
    head = (down + 0.45) ** 2 + right**2 <= 0.55**2
    body = (abs(down - 0.35) < 0.45) & (abs(right) <= 0.28 + 0.5 * down)
    return head | body


@dataclasses.dataclass(frozen=True)
class Piece:
    """Appearance of a kind of piece.

    color: color of the shape or the letter.
    letter: shown in small cells, and in all cells without a shape.
    marked_letter: shown for the piece that moved last.
    shape: painted in larger cells.
    sign: two characters on the shape, which tell the sides apart without colors.
    sign_color: color of the sign.
    smallest: width of the smallest cell with the shape (characters).
    """

    color: int
    letter: str
    marked_letter: str = ""
    shape: Shape | None = None
    sign: str = ""
    sign_color: int = 0
    smallest: int = 4


@dataclasses.dataclass(frozen=True)
class Theme:
    """Appearance of a kind of board.

    backgrounds: the two alternating colors of the cells.
    ink: color of drawings on empty cells.
    pieces: pieces by number.
    mark: color that marks the last move.
    mark_is_below: whether the mark colors the cell, not a dot on the piece.
    hole: color of the disc in an empty cell, None without a disc.
    has_lines: whether pieces stand on crossing lines.
    edges: colors of the upper and lower, and of the other edges of a rhombus.
    largest: width of the largest cell (characters).
    """

    backgrounds: tuple[int, int]
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
_CHECKERS = (0x93A5B5, 0x6D8196)
_GOLD = 0xB79B3A

_MARKS = Theme(
    backgrounds=(0xF3EFE6, 0xE6DFD0),
    ink=0xA79F8E,
    pieces=(Piece(0x0072B2, "X", "X", cross), Piece(0xD55E00, "O", "O", ring)),
    mark=0xFDE9A8,
    mark_is_below=True,
)
_MEN = Theme(
    backgrounds=_CHECKERS,
    ink=0x3D4C5A,
    pieces=(
        Piece(0xFFFFFF, "♟", "♟", pawn, smallest=6),
        Piece(0x14181D, "♟", "♟", pawn, smallest=6),
    ),
    mark=_GOLD,
    mark_is_below=True,
)

_THEMES = {
    rendering.MARKS: _MARKS,
    rendering.DISCS: Theme(
        backgrounds=(0x2A66AD, 0x2A66AD),
        ink=0x7FA9DB,
        pieces=(
            Piece(0xF0E442, "●", "◉", disc, "><", 0x8D7F00),
            Piece(0xD55E00, "○", "◎", disc, "()", 0xFFD9BD),
        ),
        mark=0xFFFFFF,
        hole=0x123A69,
    ),
    rendering.STONES: Theme(
        backgrounds=(0xDCB067, 0xDCB067),
        ink=0x7A5C2E,
        pieces=_BLACK_AND_WHITE,
        mark=0xE5484D,
        has_lines=True,
    ),
    rendering.OTHELLO: Theme(
        backgrounds=(0x5FA87B, 0x559C71),
        ink=0x2F6B49,
        pieces=_BLACK_AND_WHITE,
        mark=0xE5484D,
    ),
    rendering.MEN: _MEN,
    rendering.CHESSMEN: dataclasses.replace(
        _MEN,
        pieces=tuple(
            Piece(color, man) for color in (0xFFFFFF, 0x14181D) for man in "♟♞♝♜♛♚"
        ),
        largest=4,  # a letter is lost in a larger cell
    ),
    rendering.HEXAGONS: Theme(
        backgrounds=(0x55616D, 0x55616D),
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


def theme_of(game: Game) -> Theme:
    """Returns the theme of a game; pieces without a theme are shown as letters."""
    theme = _THEMES.get(game.style, _MARKS)
    if len(game.pieces) == len(theme.pieces):
        return theme
    colors = (0x0072B2, 0xD55E00)
    letters = tuple(
        Piece(colors[2 * number >= len(game.pieces)], letter)
        for number, letter in enumerate(game.pieces)
        if letter in string.printable
    )
    return dataclasses.replace(_MARKS, pieces=letters, largest=4)
