"""Input of moves by pointing at one cell, or at the start and the end of a move."""

import numpy as np

from azjax.games import Game, State
from azjax.games.rendering import Cell


class Pointing:
    """The moves of a position by their cells.

    unplaced: legal actions without a cell, such as a pass.

    Args:
        game: the game.
        state: the position.
        legal: the legal actions.
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
