"""Fixed handicap of Go (Farnebäck 2002, "Specification of the Go Text Protocol",
section 4.1.1)."""

MIN_STONES = 2
_MIN_SIZE = 7
_FOURTH_LINE_SIZE = 13  # from this size on, corner stones are on the fourth lines


def max_stones(size: int) -> int:
    """Returns the largest fixed handicap on a board of `size` lines, 0 if none."""
    if size < _MIN_SIZE:
        return 0
    return 4 if size == _MIN_SIZE or size % 2 == 0 else 9


def fixed_points(size: int, num_stones: int) -> list[tuple[int, int]]:
    """Returns the points of a fixed handicap as (column, row), from 1 at the bottom
    left.

    Args:
        size: lines of the board.
        num_stones: number of stones, from `MIN_STONES` to `max_stones(size)`.
    """
    low = 3 if size < _FOURTH_LINE_SIZE else 4
    high, middle = size + 1 - low, (size + 1) // 2
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
    points = [*corners, *sides]
    if num_stones > 4 and num_stones % 2:
        return [*points[: num_stones - 1], (middle, middle)]
    return points[:num_stones]
