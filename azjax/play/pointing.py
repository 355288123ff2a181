"""Moves made by pointing at the board, at one cell or first from and then to one."""

import numpy as np

from azjax.games import Game, State
from azjax.games.rendering import Cell


class Pointing:
    """What a person can point at in one position.

    unplaced: legal actions without a cell, such as a pass.

    Args:
        game: what is played.
        state: the position.
        legal: the actions that may be played.
    """

    def __init__(self, game: Game, state: State, legal: list[int]):
        self._is_by_column = not game.row_labels
        self._actions: dict[tuple[Cell, ...], int] = {}
        self._ends: dict[Cell, list[Cell]] = {}  # by start, None where there is none
        self._targets: list[Cell] = []
        self.unplaced: list[int] = []
        for action in legal:
            cells = game.action_cells(state, action)
            if not cells:
                self.unplaced.append(action)
                continue
            # What a pawn becomes needs typing, unless it is the first that there is.
            self._actions.setdefault(tuple(map(self._key, cells)), action)
            if len(cells) == 1:
                self._targets.append(cells[0])
            else:
                self._ends.setdefault(cells[0], []).append(cells[1])
        empty = int((np.asarray(game.board(state)) < 0).sum())
        self._is_telling = len(self._targets) <= empty // 2

    def action(self, cells: tuple[Cell, ...]) -> int | None:
        """Returns the action of the cells that were pointed at, None if it is none."""
        return self._actions.get(tuple(map(self._key, cells)))

    def can_begin(self, cell: Cell) -> bool:
        """Returns whether something in a cell can move to another."""
        return cell in self._ends

    def hints(self, start: Cell | None) -> list[Cell]:
        """Returns the cells worth a hint: where what is at `start` may go, or else
        where a move may be made, if that is not almost everywhere."""
        if start is not None:
            return self._ends.get(start, [])
        return self._targets if self._is_telling else []

    def _key(self, cell: Cell) -> Cell:
        return (0, cell[1]) if self._is_by_column else cell
