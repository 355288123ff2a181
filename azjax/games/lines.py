"""The lines that won a game, for people to see."""

import numpy as np

from azjax.games.rendering import Cell

_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))  # (down, right)


def cells_in_lines(
    board: np.ndarray, length: int, *, exact: bool = False
) -> tuple[Cell, ...]:
    """Returns the cells of all rows, columns and diagonals of equal pieces, in order.

    Args:
        board: `[H, W]` int; -1 where empty.
        length: cells that a line has at least.
        exact: whether longer lines do not count.
    """
    found: set[Cell] = set()
    for row, column in np.argwhere(board >= 0).tolist():
        for step in _STEPS:
            line = _line(board, (row, column), step)
            before = (row - step[0], column - step[1])
            is_whole = _piece(board, before) != board[row, column]
            is_long = len(line) == length if exact else len(line) >= length
            if is_whole and is_long:
                found.update(line)
    return tuple(sorted(found))


def _line(board: np.ndarray, cell: Cell, step: tuple[int, int]) -> list[Cell]:
    """Returns the cells from `cell` on that have the same piece."""
    line, piece = [], board[cell]
    while _piece(board, cell) == piece:
        line.append(cell)
        cell = (cell[0] + step[0], cell[1] + step[1])
    return line


def _piece(board: np.ndarray, cell: Cell) -> int:
    """Returns the piece in a cell, -1 beside the board too."""
    row, column = cell
    is_inside = 0 <= row < board.shape[0] and 0 <= column < board.shape[1]
    return int(board[cell]) if is_inside else -1
