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
    # What is rolled over an edge comes no further than the margin.
    padded = np.pad(board, length, constant_values=-1)
    found = np.zeros(padded.shape, bool)
    for step in _STEPS:
        before, *line, behind = (
            _moved(padded, step, -place) == padded for place in range(-1, length + 1)
        )
        starts = np.logical_and.reduce([padded >= 0, *line])
        if exact:
            starts &= ~before & ~behind
        for place in range(length):
            found |= _moved(starts, step, place)
    cells = np.argwhere(found[length:-length, length:-length]).tolist()
    return tuple((row, column) for row, column in cells)


def _moved(cells: np.ndarray, step: tuple[int, int], times: int) -> np.ndarray:
    return np.roll(cells, (times * step[0], times * step[1]), axis=(0, 1))
