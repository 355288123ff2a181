"""The board widget, with a cursor and mouse input."""

from collections.abc import Callable

import numpy as np
from rich.text import Text
from textual import events
from textual.widget import Widget

from azjax.games import Game, State
from azjax.games.rendering import Cell
from azjax.play.screen.drawing import Frame, Scene, draw, frame, smallest
from azjax.play.screen.themes import theme_of
from azjax.play.session import Session


class Pointing:
    """The moves of a position by their cells.

    unplaced: legal actions without a cell, such as a pass.
    """

    def __init__(self, game: Game, state: State, legal: list[int]):
        self._is_by_column = not game.row_labels
        self._actions: dict[tuple[Cell, ...], int] = {}
        self._ends: dict[Cell, list[Cell]] = {}  # by start
        self._targets: list[Cell] = []
        self.unplaced: list[int] = []
        for action in legal:
            cells = game.action_cells(state, action)
            if not cells:
                self.unplaced.append(action)
                continue
            # Of several promotions, the first is played; the others must be typed.
            self._actions.setdefault(tuple(map(self._key, cells)), action)
            if len(cells) == 1:
                self._targets.append(cells[0])
            else:
                self._ends.setdefault(cells[0], []).append(cells[1])
        empty = int((np.asarray(game.board(state)) < 0).sum())
        self._has_hints = len(self._targets) <= empty // 2

    def action(self, cells: tuple[Cell, ...]) -> int | None:
        """Returns the action of the given cells, None if there is none."""
        return self._actions.get(tuple(map(self._key, cells)))

    def can_begin(self, cell: Cell) -> bool:
        """Returns whether a piece in this cell can move."""
        return cell in self._ends

    def hints(self, start: Cell | None) -> list[Cell]:
        """Returns the cells to highlight: the ends of moves from `start`, or without
        `start` the cells of moves, unless these are most of the empty cells."""
        if start is not None:
            return self._ends.get(start, [])
        return self._targets if self._has_hints else []

    def _key(self, cell: Cell) -> Cell:
        return (0, cell[1]) if self._is_by_column else cell


class Board(Widget):
    """Shows a session's position; moves are chosen by pointing.

    Args:
        session: the session.
        play: called with a chosen action.
        miss: called when the user points at a cell without a move.
    """

    def __init__(
        self,
        session: Session,
        play: Callable[[int], None],
        miss: Callable[[], None],
    ):
        super().__init__(id="board")
        self._session, self._play, self._miss = session, play, miss
        self._theme = theme_of(session.game)
        self._board = np.asarray(session.game.board(session.state))
        height, width = self._board.shape
        self._cursor: Cell = (height // 2, width // 2)
        self._start: Cell | None = None  # selected start of a move
        self.update()

    def update(self) -> None:
        """Shows the current position."""
        session, self._start = self._session, None
        legal = session.legal_actions() if session.is_persons_turn else []
        self._board = np.asarray(session.game.board(session.state))
        self._pointing = Pointing(session.game, session.state, legal)
        self.refresh()

    @property
    def unplaced(self) -> list[int]:
        """The legal actions without a cell."""
        return self._pointing.unplaced

    @property
    def smallest_size(self) -> tuple[int, int]:
        """The rows and columns of the smallest drawing."""
        return smallest(self._session.game, self._theme)

    def render(self) -> Text:
        """Returns the board, centered."""
        found = self._frame()
        if found is None:
            rows, columns = self.smallest_size
            return Text(
                f"This window is too small for the board: it needs {columns} columns "
                f"and {rows} rows and has {self.size.width} and {self.size.height}. "
                "Enlarge the window, or type moves."
            )
        session = self._session
        moves = session.moves
        marked = session.game.winning_cells(session.state)
        if moves and not marked:
            marked = session.game.last_cells(session.state, moves[-1].action)
        scene = Scene(
            board=self._board,
            marked=marked,
            hinted=self._pointing.hints(self._start),
            selected=self._start,
            cursor=self._cursor,
        )
        top, left = self._offset(found)
        text = Text("\n" * top)
        for line in draw(found, scene).split("\n"):
            text.append_text(Text(" " * left).append_text(line)).append("\n")
        return text

    def move_cursor(self, down: int, right: int) -> None:
        """Moves the cursor."""
        height, width = self._board.shape
        row, column = self._cursor
        self._cursor = (row + down) % height, (column + right) % width
        self.refresh()

    def point(self) -> None:
        """Points at the cell under the cursor."""
        self._point(self._cursor)

    def deselect(self) -> None:
        """Deselects the piece."""
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

    def _frame(self) -> Frame | None:
        height, width = self.size.height, self.size.width
        return frame(self._session.game, self._theme, height, width)

    def _offset(self, found: Frame) -> tuple[int, int]:
        """Returns the number of empty rows above the board and columns to its left."""
        return (
            (self.size.height - found.rows) // 2,
            (self.size.width - found.columns) // 2,
        )
