"""Drawing of a board, as large as possible, with two pixels in a character; a theme for
each picture style."""

import dataclasses
import functools
import itertools
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rich.style import Style
from rich.text import Text

from azjax.games import Game, rendering
from azjax.games.rendering import Cell
from azjax.games.rendering.styles import (
    UR_HOMES,
    UR_ROLLS,
    UR_ROSETTES,
    UR_STARTS,
    star_lines,
)

NOTHING = -1
SIZES = (12, 10, 8, 6, 4, 2)  # of a cell: width in characters, height in pixels
ACCENT = 0x12A5A0
LABEL = 0x8A949E
HINT = 0x0B3B3A
MARKED_SIGN = 0x1D1D1F
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
    sign: two characters on the shape, which tell the sides apart without colors, or the
        number of seeds.
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
    cells: colors of cells that differ from `backgrounds`.
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
    cells: Mapping[Cell, int] = dataclasses.field(default_factory=dict)


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
    rendering.SEEDS: Theme(
        backgrounds=(0xDCB067, 0xDCB067),
        ink=0x7A5C2E,
        pieces=tuple(
            Piece(
                0x5F4220,
                letter=str(count),
                shape=disc,
                sign=f"{count:>2}",
                sign_color=0xF4DFB2 if count else 0xA98A5C,
            )
            for count in range(len(rendering.SEED_LETTERS))
        ),
        mark=0xF7E3B4,
        mark_is_below=True,
    ),
    rendering.UR: Theme(
        backgrounds=(0xC8AE7C, 0xBDA26E),
        ink=0x5C4A2A,
        pieces=tuple(
            piece
            for color, sign_color in ((_WHITE, _BLACK), (_BLACK, _WHITE))
            for piece in (
                Piece(color, "●", "◉", disc),
                *(
                    Piece(color, f"{n}", "", disc, f"{n:>2}", sign_color)
                    for n in range(2, 8)
                ),
                *(Piece(color, f"{roll}") for roll in range(5)),
            )
        ),
        mark=0xE5484D,
        cells={
            **dict.fromkeys(UR_ROSETTES, 0xB5603F),
            **dict.fromkeys((*UR_STARTS, *UR_HOMES, *UR_ROLLS), 0x7A7466),
        },
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


class _Letter(NamedTuple):
    """A character drawn over two pixels.

    background: it is only shown on pixels of this color; None for all colors.
    """

    text: str
    color: int
    is_bold: bool
    background: int | None


class Canvas:
    """Pixels with letters over them, in rows and columns of characters. Colors are
    integers such as 0xff8000."""

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        self.pixels = np.full((2 * rows, columns), NOTHING, np.int32)
        self._letters: dict[tuple[int, int], _Letter] = {}

    def paint(self, y: int, x: int, shape: np.ndarray, color: int) -> None:
        """Paints the pixels of a `[H, W]` bool mask, with its top left at (y, x)."""
        height, width = shape.shape
        self.pixels[y : y + height, x : x + width][shape] = color

    def write(
        self,
        row: int,
        column: int,
        text: str,
        color: int,
        *,
        is_bold: bool = False,
        background: int | None = None,
    ) -> None:
        """Writes characters.

        Args:
            row: character row.
            column: column of the first character.
            text: characters of width 1; spaces are transparent.
            color: color of the characters.
            is_bold: whether they are bold.
            background: write only on pixels of this color; None for all colors.
        """
        for offset, character in enumerate(text):
            if character != " ":
                letter = _Letter(character, color, is_bold, background)
                self._letters[row, column + offset] = letter

    def lines(self) -> list[Text]:
        """Returns the rows as styled text."""
        lines = [Text(no_wrap=True, end="") for _ in range(self.rows)]
        for row, line in enumerate(lines):
            characters = (self._character(row, place) for place in range(self.columns))
            # One run for each style: Textual's time depends on the number of runs.
            for style, run in itertools.groupby(characters, key=lambda found: found[1]):
                line.append("".join(text for text, _ in run), style)
        return lines

    def _character(self, row: int, column: int) -> tuple[str, Style]:
        upper, lower = self.pixels[2 * row : 2 * row + 2, column].tolist()
        letter = self._letters.get((row, column))
        if letter and (
            letter.background is None or upper == lower == letter.background
        ):
            background = lower if upper == NOTHING else upper
            return letter.text, _style(letter.color, background, letter.is_bold)
        if upper == lower:
            return " ", _style(NOTHING, upper)
        if upper == NOTHING:
            return "▄", _style(lower, NOTHING)
        return "▀", _style(upper, lower)


@functools.cache
def _style(color: int, background: int, is_bold: bool = False) -> Style:
    return Style(
        color=None if color == NOTHING else f"#{color:06x}",
        bgcolor=None if background == NOTHING else f"#{background:06x}",
        bold=is_bold,
    )


@dataclasses.dataclass(frozen=True)
class Scene:
    """The content of a board.

    board: `[H, W]` int, the number of a piece or -1.
    marked: the cells of the last move.
    hinted: the cells where a piece can move.
    selected: the cell of the selected piece.
    cursor: the cell of the cursor, None if it is hidden.
    """

    board: np.ndarray
    marked: Collection[Cell] = ()
    hinted: Collection[Cell] = ()
    selected: Cell | None = None
    cursor: Cell | None = None


@dataclasses.dataclass(frozen=True)
class Frame:
    """The geometry of a board, in characters and pixels.

    theme: theme of the board.
    column_labels, row_labels: labels of the game's columns and rows.
    height, width: size of the board (cells).
    cell: width of a cell in characters, equal to its height in pixels.
    """

    theme: Theme
    column_labels: Sequence[str]
    row_labels: Sequence[str]
    height: int
    width: int
    cell: int

    @property
    def is_slanted(self) -> bool:
        """Whether each row is shifted by half a cell from the row above."""
        return self.theme.edges is not None

    @property
    def rows(self) -> int:
        """Rows of characters."""
        border = 2 if self.is_slanted else 0
        return 1 + (self._origin + self.height * self.cell + 1) // 2 + border

    @property
    def columns(self) -> int:
        """Columns of characters."""
        return self.x(self.height - 1) + self.width * self.cell + self.border

    @property
    def _origin(self) -> int:
        """The pixels above the board, so that a text row passes through the middle of
        the cells."""
        return 1 if self.cell % 4 == 0 else 0

    @property
    def border(self) -> int:
        """Characters of the colored edge on either side."""
        return 2 if self.is_slanted else 0

    @property
    def _margin(self) -> int:
        """Characters of the row labels."""
        return max((len(label) + 1 for label in self.row_labels), default=0)

    def x(self, row: int) -> int:
        """Returns the first text column of a row's cells."""
        slant = row * self.cell // 2 if self.is_slanted else 0
        return self._margin + self.border + slant

    def y(self, row: int) -> int:
        """Returns the first pixel row of a row's cells."""
        above = 4 if self.is_slanted else 0  # labels and border
        return above + self._origin + row * self.cell

    def middle(self, row: int) -> int:
        """Returns the text row through the middle of a row's cells."""
        return (self.y(row) + self.cell // 2 - 1) // 2

    @property
    def label_row(self) -> int:
        """The text row of the column labels."""
        return 0 if self.is_slanted else self.rows - 1

    def cell_at(self, row: int, column: int) -> Cell | None:
        """Returns the cell at a character, None outside the board."""
        board_row = (2 * row + 1 - self.y(0)) // self.cell
        if not 0 <= board_row < self.height:
            return None
        board_column = (column - self.x(board_row)) // self.cell
        return (board_row, board_column) if 0 <= board_column < self.width else None


def frame(game: Game, theme: Theme, rows: int, columns: int) -> Frame | None:
    """Returns the largest frame that fits, None if none does."""
    height, width = game.board(game.init()).shape
    for cell in SIZES:
        found = Frame(theme, game.column_labels, game.row_labels, height, width, cell)
        has_room = found.rows <= rows and found.columns <= columns
        if cell <= theme.largest and has_room:
            return found
    return None


def smallest(game: Game, theme: Theme) -> tuple[int, int]:
    """Returns the text rows and columns of the smallest frame."""
    height, width = game.board(game.init()).shape
    least = Frame(theme, game.column_labels, game.row_labels, height, width, SIZES[-1])
    return least.rows, least.columns


def draw(frame: Frame, scene: Scene) -> Text:
    """Returns the board as styled text."""
    painter = _Painter(frame)
    painter.labels()
    painter.edges()
    for row, column in np.ndindex(frame.height, frame.width):
        painter.cell((row, column), scene)
    return Text("\n").join(painter.canvas.lines())


class _Painter:
    """Draws the parts of a board."""

    def __init__(self, frame: Frame):
        self.frame = frame
        self.canvas = Canvas(frame.rows, frame.columns)
        steps = (np.arange(frame.cell) + 0.5) / frame.cell * 2 - 1
        self.points = np.meshgrid(steps, steps, indexing="ij")
        self.is_small = frame.cell == SIZES[-1]

    def labels(self) -> None:
        """Writes the labels of columns and rows."""
        frame = self.frame
        for column, label in enumerate(frame.column_labels):
            left = frame.x(0) + column * frame.cell + (frame.cell - len(label)) // 2
            self.canvas.write(frame.label_row, left, label, LABEL)
        for row, label in enumerate(frame.row_labels):
            left = frame.x(row) - frame.border - len(label) - 1
            self.canvas.write(frame.middle(row), left, label, LABEL)

    def edges(self) -> None:
        """Paints the edges of a rhombus in the players' colors."""
        frame, last = self.frame, self.frame.height - 1
        if frame.theme.edges is None:
            return
        across = np.full((2, frame.width * frame.cell), True)
        vertical = np.full((frame.cell, frame.border), True)
        upper_and_lower, others = frame.theme.edges
        self.canvas.paint(frame.y(0) - 2, frame.x(0), across, upper_and_lower)
        below = frame.y(last) + frame.cell
        self.canvas.paint(below, frame.x(last), across, upper_and_lower)
        for row in range(frame.height):
            y, x = frame.y(row), frame.x(row)
            self.canvas.paint(y, x - frame.border, vertical, others)
            self.canvas.paint(y, x + frame.width * frame.cell, vertical, others)

    def cell(self, cell: Cell, scene: Scene) -> None:
        """Draws a cell with its content."""
        theme, size = self.frame.theme, self.frame.cell
        y, x = self.place(cell)
        # The cell at the bottom left is dark.
        background = theme.backgrounds[(self.frame.height - sum(cell)) % 2]
        background = theme.cells.get(cell, background)
        if self.is_small and theme.hole is not None:
            background = theme.hole
        is_marked = cell in scene.marked
        if is_marked and theme.mark_is_below:
            background = theme.mark
        if cell == scene.selected or (cell == scene.cursor and self.is_small):
            background = ACCENT
        self.canvas.paint(y, x, np.full((size, size), True), background)
        if theme.has_lines:
            self.lines(cell, background)
        number, middle = int(scene.board[cell]), self.frame.middle(cell[0])
        if number >= 0:
            self.piece(cell, theme.pieces[number], is_marked)
        elif theme.hole is not None and not self.is_small:
            shape = disc if size > 4 else dot
            self.canvas.paint(y, x, shape(*self.points), theme.hole)
        elif self.is_small and not theme.has_lines and not theme.mark_is_below:
            self.canvas.write(middle, x, "·", theme.ink)
        if cell in scene.hinted and number < 0 and not self.is_small:
            self.canvas.paint(y, x, dot(*self.points), theme.ink)
        elif cell in scene.hinted:
            letter = "•" if number < 0 else "x"
            self.canvas.write(middle, x + size - 1, letter, HINT)
        if cell == scene.cursor and not self.is_small:  # four corners
            place = np.minimum(np.arange(size), np.arange(size)[::-1])
            is_near, is_rim = place < max(1, size // 4), place == 0
            corners = (is_near[:, None] & is_rim) | (is_rim[:, None] & is_near)
            self.canvas.paint(y, x, corners, ACCENT)

    def place(self, cell: Cell) -> tuple[int, int]:
        """Returns the first pixel row and the first column of a cell."""
        row, column = cell
        return self.frame.y(row), self.frame.x(row) + column * self.frame.cell

    def lines(self, cell: Cell, background: int) -> None:
        """Draws the crossing lines of a cell."""
        row, column = cell
        height, width, size = self.frame.height, self.frame.width, self.frame.cell
        y, x = self.place(cell)
        middle, center = self.frame.middle(row), x + size // 2 - 1
        down = 0 if row == 0 else 2 if row == height - 1 else 1
        right = 0 if column == 0 else 2 if column == width - 1 else 1
        is_star = row in star_lines(height) and column in star_lines(width)
        crossing = "╋" if is_star else ("┌┬┐", "├┼┤", "└┴┘")[down][right]
        write = functools.partial(self.canvas.write, background=background)
        ink = self.frame.theme.ink
        if column > 0:
            write(middle, x, "─" * (center - x), ink)
        if column < width - 1:
            write(middle, center, "─" * (x + size - center), ink)
        for text_row in range(y // 2, (y + size - 1) // 2 + 1):
            is_line = row > 0 if text_row < middle else row < height - 1
            if is_line:
                write(text_row, center, "│", ink)
        write(middle, center, crossing, ink)

    def piece(self, cell: Cell, piece: Piece, is_marked: bool) -> None:
        """Draws a piece."""
        theme, middle = self.frame.theme, self.frame.middle(cell[0])
        y, x = self.place(cell)
        center = x + self.frame.cell // 2 - 1
        if piece.shape is None or self.frame.cell < piece.smallest:
            letter = piece.marked_letter if is_marked else ""
            letter = letter or piece.letter
            self.canvas.write(middle, center, letter, piece.color, is_bold=True)
            return
        self.canvas.paint(y, x, piece.shape(*self.points), piece.color)
        color = piece.sign_color
        if is_marked and not theme.mark_is_below:
            self.canvas.paint(y, x, dot(*self.points), theme.mark)
            color = MARKED_SIGN
        self.canvas.write(middle, center, piece.sign, color, is_bold=True)
