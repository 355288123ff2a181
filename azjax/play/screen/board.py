"""The board on the screen, with a cursor and for the mouse."""

from collections.abc import Callable

import numpy as np
from rich.text import Text
from textual import events
from textual.widget import Widget

from azjax.games.rendering import Cell
from azjax.play.controller import Controller
from azjax.play.pointing import Pointing
from azjax.play.screen.drawing import Frame, Scene, draw, frame, smallest
from azjax.play.screen.themes import look_of


class Board(Widget):
    """Shows a controller's position, and lets a person point at moves.

    Args:
        controller: of the game.
        play: called with the move at which a person points.
        miss: called when a person points at something that is no move.
    """

    def __init__(
        self,
        controller: Controller,
        play: Callable[[int], None],
        miss: Callable[[], None],
    ):
        super().__init__(id="board")
        self._controller, self._play, self._miss = controller, play, miss
        self._look = look_of(controller.game)
        self._board = np.asarray(controller.game.board(controller.state))
        height, width = self._board.shape
        self._cursor: Cell = (height // 2, width // 2)
        self._start: Cell | None = None  # of a move of two cells
        self.follow()

    def follow(self) -> None:
        """Shows the position that the controller has."""
        controller, self._start = self._controller, None
        legal = controller.legal_actions() if controller.is_persons_turn else []
        self._board = np.asarray(controller.game.board(controller.state))
        self._pointing = Pointing(controller.game, controller.state, legal)
        self.refresh()

    @property
    def unplaced(self) -> list[int]:
        """The legal actions at which nobody can point."""
        return self._pointing.unplaced

    @property
    def needs(self) -> tuple[int, int]:
        """The rows and columns that the smallest board has."""
        return smallest(self._controller.game, self._look)

    def render(self) -> Text:
        """Returns the board in the middle of the room there is."""
        found = self._frame()
        if found is None:
            rows, columns = self.needs
            return Text(
                f"This window is too small for the board, which needs {columns} "
                f"columns and {rows} rows here; there are {self.size.width} and "
                f"{self.size.height}. You can make the window larger, or type moves."
            )
        top, left = self._offset(found)
        text = Text("\n" * top)
        for line in draw(found, self._scene()).split("\n"):
            text.append_text(Text(" " * left).append_text(line)).append("\n")
        return text

    def steer(self, down: int, right: int) -> None:
        """Moves the cursor."""
        height, width = self._board.shape
        row, column = self._cursor
        self._cursor = (row + down) % height, (column + right) % width
        self.refresh()

    def point(self) -> None:
        """Points at the cell under the cursor."""
        self._point(self._cursor)

    def forget(self) -> None:
        """Chooses no piece."""
        self._start = None
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Points at the cell under the mouse."""
        found = self._frame()
        if found is None:
            return
        top, left = self._offset(found)
        cell = found.cell_at(event.y - top, event.x - left)
        if cell is not None:
            self._cursor = cell
            self._point(cell)

    def _point(self, cell: Cell) -> None:
        start, self._start = self._start, None
        cells = (cell,) if start is None else (start, cell)
        action = self._pointing.action(cells)
        if action is not None:
            self._play(action)
        elif self._pointing.can_begin(cell) and cell != start:
            self._start = cell
        elif start is None:
            self._miss()
        self.refresh()

    def _scene(self) -> Scene:
        controller = self._controller
        moves = controller.moves
        marked = controller.game.winning_cells(controller.state)
        if moves and not marked:
            marked = controller.game.last_cells(controller.state, moves[-1].action)
        return Scene(
            board=self._board,
            marked=marked,
            hinted=self._pointing.hints(self._start),
            chosen=self._start,
            cursor=self._cursor,
        )

    def _frame(self) -> Frame | None:
        height, width = self.size.height, self.size.width
        return frame(self._controller.game, self._look, height, width)

    def _offset(self, found: Frame) -> tuple[int, int]:
        """Returns the empty rows above the board, and the columns to its left."""
        return (
            (self.size.height - found.rows) // 2,
            (self.size.width - found.columns) // 2,
        )
