"""Where the stones of a fixed handicap lie in Go, as GTP defines it."""

from collections.abc import Sequence

FEWEST = 2
SMALLEST_BOARD = 7
LARGE_BOARD = 13  # from here on the stones are on the fourth lines, not the third


def most_stones(size: int) -> int:
    """Returns the largest fixed handicap on a board of `size` lines, 0 for none."""
    if size < SMALLEST_BOARD:
        return 0
    return 4 if size == SMALLEST_BOARD or size % 2 == 0 else 9


def fixed_points(size: int, stones: int, column_labels: Sequence[str]) -> list[str]:
    """Returns the points of a fixed handicap.

    Args:
        size: lines of the board.
        stones: how many, from `FEWEST` to `most_stones(size)`.
        column_labels: the names of the columns, from the left.
    """
    low = 3 if size < LARGE_BOARD else 4
    high, middle = size + 1 - low, (size + 1) // 2
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
    around = [*corners, *sides]
    if stones > 4 and stones % 2:
        points = [*around[: stones - 1], (middle, middle)]
    else:
        points = around[:stones]
    return [f"{column_labels[column - 1]}{row}" for column, row in points]
