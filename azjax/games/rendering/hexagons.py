"""The look of a rhombus of hexagons, whose sides belong to the players."""

import math

from azjax.games.rendering import elements
from azjax.games.rendering.elements import BLUE, INK
from azjax.games.rendering.styles import Style

PITCH = 72  # between neighbors
ROW_PITCH = PITCH * math.sqrt(3) / 2
BORDER = 0.95  # cells between the centers of the outer cells and the end of the board
FIRST, SECOND = BLUE, "#f2b632"


def _center(row: float, column: float) -> tuple[float, float]:
    across = column + BORDER + (row + BORDER) / 2
    return across * PITCH, (row + BORDER) * ROW_PITCH


def _size(height: int, width: int) -> tuple[float, float]:
    return _center(height - 1 + BORDER, width - 1 + BORDER)


def _above(_height: int, column: int) -> tuple[float, float]:
    return _center(0, column)[0], -15


def _beside(row: int) -> tuple[float, float]:
    x, y = _center(row, -BORDER)
    return x - 16, y


def _ground(height: int, width: int) -> list[str]:
    """Returns the cells, and behind them a rhombus that shows whose sides are whose."""
    middle = _center((height - 1) / 2, (width - 1) / 2)
    top, left = -BORDER, -BORDER
    bottom, right = height - 1 + BORDER, width - 1 + BORDER
    corners = [(top, left), (top, right), (bottom, right), (bottom, left)]
    sides = [
        elements.polygon(
            [_center(*corners[side]), _center(*corners[(side + 1) % 4]), middle],
            color,
            edge=INK,
        )
        for side, color in enumerate((FIRST, SECOND, FIRST, SECOND))
    ]
    cells = [
        _hexagon(*_center(row, column))
        for row in range(height)
        for column in range(width)
    ]
    return [*sides, *cells]


def _hexagon(x: float, y: float) -> str:
    radius = PITCH / math.sqrt(3)
    angles = [math.pi * (1 / 6 + corner / 3) for corner in range(6)]
    corners = [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]
    return elements.polygon(corners, "#faf9f6", edge="#8a949e")


HEXAGONS = Style(
    ground=_ground,
    pieces=(
        lambda x, y: (
            elements.disc(x, y, 25, FIRST) + elements.cross(x, y, 9, "#d3e9f7", 5)
        ),
        lambda x, y: (
            elements.disc(x, y, 25, SECOND) + elements.circle(x, y, 11, "#7a5600", 5)
        ),
    ),
    names=("crosses from top to bottom", "rings from left to right"),
    mark=lambda x, y: elements.circle(x, y, 28, INK, 4),
    center=_center,
    size=_size,
    column_label=_above,
    row_label=_beside,
)
