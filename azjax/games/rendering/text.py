"""Boards as text."""

from collections.abc import Collection, Sequence

import numpy as np

Cell = tuple[int, int]  # row from the top, column from the left


def board_to_text(
    board: np.ndarray,
    pieces: str,
    *,
    marked: Collection[Cell],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    indent: int = 0,
) -> str:
    """Draws a board: a letter for each piece, `.` where empty, brackets where marked.

    Args:
        board: `[H, W]` int.
        pieces: the letters, by the number of the piece.
        marked: the cells of the last move.
        column_labels: W labels, written above the board.
        row_labels: H labels from the top row down, written to its left; none at all
            leave them out.
        indent: characters by which each row is shifted to the right of the one above.
    """
    margin = max((len(label) for label in row_labels), default=0)
    lines = [" " * margin + "".join(f"{label:^3}" for label in column_labels)]
    for row, cells in enumerate(board):
        label = row_labels[row] if row_labels else ""
        letters = ((pieces + ".")[piece] for piece in cells)
        symbols = (
            f"[{letter}]" if (row, column) in marked else f" {letter} "
            for column, letter in enumerate(letters)
        )
        shift = " " * (indent * row)
        lines.append(shift + f"{label:>{margin}}" + "".join(symbols))
    return "\n".join(line.rstrip() for line in lines)
