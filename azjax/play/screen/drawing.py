"""A board drawn into a canvas, as large as its place allows."""

import dataclasses
import functools
from collections.abc import Collection, Sequence

import numpy as np
from rich.text import Text

from azjax.games import Game
from azjax.games.rendering import Cell
from azjax.games.rendering.styles import star_lines
from azjax.play.screen.canvas import Canvas
from azjax.play.screen.themes import Look, Piece, disc, dot

SIZES = (12, 10, 8, 6, 4, 2)  # of a cell: its width in characters, twice its height
ACCENT = 0x12A5A0
LABEL = 0x8A949E
HINT = 0x0B3B3A
MARKED_SIGN = 0x1D1D1F


@dataclasses.dataclass(frozen=True)
class Scene:
    """What is to be seen on a board.

    board: `[H, W]` int, the number of a piece or -1.
    marked: the cells of the last move.
    hinted: cells to which a piece may go.
    chosen: the cell of the piece that is to move.
    cursor: where the cursor is, None where it is hidden.
    """

    board: np.ndarray
    marked: Collection[Cell] = ()
    hinted: Collection[Cell] = ()
    chosen: Cell | None = None
    cursor: Cell | None = None


@dataclasses.dataclass(frozen=True)
class Frame:
    """Where the cells of a board lie, in characters and pixels.

    look: of the board.
    column_labels, row_labels: as the game has them.
    height, width: of the board, in cells.
    cell: the width of a cell in characters, which is its height in pixels.
    """

    look: Look
    column_labels: Sequence[str]
    row_labels: Sequence[str]
    height: int
    width: int
    cell: int

    @property
    def is_slanted(self) -> bool:
        """Whether each row begins half a cell to the right of the one above."""
        return self.look.edges is not None

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
        """The pixels above the board, for which pieces have a row of characters in
        their middle."""
        return 1 if self.cell % 4 == 0 else 0

    @property
    def border(self) -> int:
        """The characters on either side that show whose sides they are."""
        return 2 if self.is_slanted else 0

    @property
    def _margin(self) -> int:
        """The characters that the names of the rows need."""
        return max((len(label) + 1 for label in self.row_labels), default=0)

    def x(self, row: int) -> int:
        """Returns the first column of characters of a row's cells."""
        slant = row * self.cell // 2 if self.is_slanted else 0
        return self._margin + self.border + slant

    def y(self, row: int) -> int:
        """Returns the first pixel of a row's cells."""
        above = 4 if self.is_slanted else 0  # names and border
        return above + self._origin + row * self.cell

    def middle(self, row: int) -> int:
        """Returns the row of characters through the middle of a row's cells."""
        return (self.y(row) + self.cell // 2 - 1) // 2

    @property
    def label_row(self) -> int:
        """Returns the row of characters with the names of the columns."""
        return 0 if self.is_slanted else self.rows - 1

    def cell_at(self, row: int, column: int) -> Cell | None:
        """Returns the cell at a character, None where there is none."""
        board_row = (2 * row + 1 - self.y(0)) // self.cell
        if not 0 <= board_row < self.height:
            return None
        board_column = (column - self.x(board_row)) // self.cell
        return (board_row, board_column) if 0 <= board_column < self.width else None


def frame(game: Game, look: Look, rows: int, columns: int) -> Frame | None:
    """Returns the largest frame that has room, None if even the smallest has not."""
    height, width = game.board(game.init()).shape
    for cell in SIZES:
        found = Frame(look, game.column_labels, game.row_labels, height, width, cell)
        has_room = found.rows <= rows and found.columns <= columns
        if cell <= look.largest and has_room:
            return found
    return None


def smallest(game: Game, look: Look) -> tuple[int, int]:
    """Returns the rows and columns of characters that a board needs."""
    height, width = game.board(game.init()).shape
    least = Frame(look, game.column_labels, game.row_labels, height, width, SIZES[-1])
    return least.rows, least.columns


def draw(frame: Frame, scene: Scene) -> Text:
    """Returns the board as lines of text."""
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
        """Writes the names of columns and rows."""
        frame = self.frame
        for column, label in enumerate(frame.column_labels):
            left = frame.x(0) + column * frame.cell + (frame.cell - len(label)) // 2
            self.canvas.write(frame.label_row, left, label, LABEL)
        for row, label in enumerate(frame.row_labels):
            left = frame.x(row) - frame.border - len(label) - 1
            self.canvas.write(frame.middle(row), left, label, LABEL)

    def edges(self) -> None:
        """Paints the sides of a rhombus, which belong to the players."""
        frame, last = self.frame, self.frame.height - 1
        if frame.look.edges is None:
            return
        across = np.full((2, frame.width * frame.cell), True)
        beside = np.full((frame.cell, frame.border), True)
        upper_and_lower, others = frame.look.edges
        self.canvas.paint(frame.y(0) - 2, frame.x(0), across, upper_and_lower)
        below = frame.y(last) + frame.cell
        self.canvas.paint(below, frame.x(last), across, upper_and_lower)
        for row in range(frame.height):
            y, x = frame.y(row), frame.x(row)
            self.canvas.paint(y, x - frame.border, beside, others)
            self.canvas.paint(y, x + frame.width * frame.cell, beside, others)

    def cell(self, cell: Cell, scene: Scene) -> None:
        """Draws a cell with what is in it."""
        look, size = self.frame.look, self.frame.cell
        y, x = self.place(cell)
        # The cell at the bottom left is a dark one.
        ground = look.grounds[(self.frame.height - sum(cell)) % 2]
        if self.is_small and look.hole is not None:
            ground = look.hole
        is_marked = cell in scene.marked
        if is_marked and look.mark_is_below:
            ground = look.mark
        if cell == scene.chosen or (cell == scene.cursor and self.is_small):
            ground = ACCENT
        self.canvas.paint(y, x, np.full((size, size), True), ground)
        if look.has_lines:
            self.lines(cell, ground)
        number = int(scene.board[cell])
        if number < 0:
            self.empty(cell)
        else:
            self.piece(cell, look.pieces[number], is_marked)
        if cell in scene.hinted:
            self.hint(cell, is_empty=number < 0)
        if cell == scene.cursor and not self.is_small:
            self.canvas.paint(y, x, self.corners(), ACCENT)

    def place(self, cell: Cell) -> tuple[int, int]:
        """Returns the first pixel row and the first column of a cell."""
        row, column = cell
        return self.frame.y(row), self.frame.x(row) + column * self.frame.cell

    def lines(self, cell: Cell, ground: int) -> None:
        """Draws the lines that cross in a cell."""
        row, column = cell
        height, width, size = self.frame.height, self.frame.width, self.frame.cell
        y, x = self.place(cell)
        middle, centre = self.frame.middle(row), x + size // 2 - 1
        down = 0 if row == 0 else 2 if row == height - 1 else 1
        right = 0 if column == 0 else 2 if column == width - 1 else 1
        is_star = row in star_lines(height) and column in star_lines(width)
        crossing = "╋" if is_star else ("┌┬┐", "├┼┤", "└┴┘")[down][right]
        write = functools.partial(self.canvas.write, ground=ground)
        ink = self.frame.look.ink
        if column > 0:
            write(middle, x, "─" * (centre - x), ink)
        if column < width - 1:
            write(middle, centre, "─" * (x + size - centre), ink)
        for text_row in range(y // 2, (y + size - 1) // 2 + 1):
            is_line = row > 0 if text_row < middle else row < height - 1
            if is_line:
                write(text_row, centre, "│", ink)
        write(middle, centre, crossing, ink)

    def empty(self, cell: Cell) -> None:
        """Draws what an empty cell holds."""
        look = self.frame.look
        y, x = self.place(cell)
        if look.hole is not None and not self.is_small:
            shape = disc if self.frame.cell > 4 else dot
            self.canvas.paint(y, x, shape(*self.points), look.hole)
        elif self.is_small and not look.has_lines and not look.mark_is_below:
            self.canvas.write(self.frame.middle(cell[0]), x, "·", look.ink)

    def piece(self, cell: Cell, piece: Piece, is_marked: bool) -> None:
        """Draws a piece."""
        look, middle = self.frame.look, self.frame.middle(cell[0])
        y, x = self.place(cell)
        centre = x + self.frame.cell // 2 - 1
        if piece.shape is None or self.frame.cell < piece.smallest:
            letter = piece.marked_letter if is_marked else ""
            letter = letter or piece.letter
            self.canvas.write(middle, centre, letter, piece.colour, is_bold=True)
            return
        self.canvas.paint(y, x, piece.shape(*self.points), piece.colour)
        colour = piece.sign_colour
        if is_marked and not look.mark_is_below:
            self.canvas.paint(y, x, dot(*self.points), look.mark)
            colour = MARKED_SIGN
        self.canvas.write(middle, centre, piece.sign, colour, is_bold=True)

    def hint(self, cell: Cell, *, is_empty: bool) -> None:
        """Shows that a piece may go to a cell."""
        y, x = self.place(cell)
        if self.is_small or not is_empty:
            column = x + self.frame.cell - 1
            letter = "•" if is_empty else "x"
            self.canvas.write(self.frame.middle(cell[0]), column, letter, HINT)
        else:
            self.canvas.paint(y, x, dot(*self.points), self.frame.look.ink)

    def corners(self) -> np.ndarray:
        """Returns the `[size, size]` pixels in the corners of a cell."""
        size, arm = self.frame.cell, max(1, self.frame.cell // 4)
        place = np.minimum(np.arange(size), np.arange(size)[::-1])
        is_near, is_rim = place < arm, place == 0
        return (is_near[:, None] & is_rim) | (is_rim[:, None] & is_near)
