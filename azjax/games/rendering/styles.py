"""How boards and pieces look, one style for each kind of game.

Player 0 and player 1 always differ in more than a color's hue.
"""

import dataclasses
import functools
import math
import string
from collections.abc import Callable, Sequence
from typing import NamedTuple

from azjax.games.rendering import elements
from azjax.games.rendering.elements import BLUE, INK, ORANGE, YELLOW

CELL_SIZE = 64
_WOOD, _WOOD_LINE = "#e3b873", "#6f5329"


def _square_center(row: int, column: int) -> tuple[float, float]:
    return (column + 0.5) * CELL_SIZE, (row + 0.5) * CELL_SIZE


def _square_size(height: int, width: int) -> tuple[float, float]:
    return width * CELL_SIZE, height * CELL_SIZE


def _below(height: int, column: int) -> tuple[float, float]:
    return _square_center(0, column)[0], height * CELL_SIZE + 15


def _beside(row: int) -> tuple[float, float]:
    return -15, _square_center(row, 0)[1]


class Side(NamedTuple):
    """A player, where the kinds of pieces do not name it.

    name: in the plural, such as `southern pits`.
    color: such as `#0072b2`.
    """

    name: str
    color: str


@dataclasses.dataclass(frozen=True)
class Style:
    """How a kind of board is drawn.

    ground: `(height, width) -> elements` behind the pieces, in cells.
    pieces: for each kind of piece, `(x, y) -> element` drawn around that point.
    names: for each kind of piece, its name in the plural.
    mark: `(x, y) -> element` that marks a cell of the last move.
    mark_is_below: whether the pieces are drawn over the mark.
    center: `(row, column) -> (x, y)`, where a cell's center lies.
    size: `(height, width) -> (width, height)` of a board, in pixels.
    column_label: `(height, column) -> (x, y)`, the middle of a column's name.
    row_label: `row -> (x, y)`, the middle of a row's name.
    is_two_sided: whether player 1 sees the board from the opposite side.
    front: `(height, width) -> elements` of the board in front of the pieces.
    text_indent: characters by which a row of a board drawn as text is shifted to the
        right of the one above.
    sides: the players, if the pieces belong to neither or are of many kinds; by default
        the players have the names and colors of their pieces.
    """

    ground: Callable[[int, int], Sequence[str]]
    pieces: tuple[Callable[[float, float], str], ...]
    names: tuple[str, ...]
    mark: Callable[[float, float], str]
    mark_is_below: bool = False
    center: Callable[[int, int], tuple[float, float]] = _square_center
    size: Callable[[int, int], tuple[float, float]] = _square_size
    column_label: Callable[[int, int], tuple[float, float]] = _below
    row_label: Callable[[int], tuple[float, float]] = _beside
    is_two_sided: bool = False
    front: Callable[[int, int], Sequence[str]] = lambda height, width: ()
    text_indent: int = 0
    sides: tuple[Side, Side] | None = None


def _grid(height: int, width: int, color: str = elements.PALE_INK) -> list[str]:
    """Returns the lines between the cells."""
    right, bottom = _square_size(height, width)
    return [
        *(elements.line(x * CELL_SIZE, 0, 0, bottom, color) for x in range(1, width)),
        *(elements.line(0, y * CELL_SIZE, right, 0, color) for y in range(1, height)),
    ]


def _paper(height: int, width: int) -> list[str]:
    ground = elements.rectangle(0, 0, *_square_size(height, width), "white", radius=6)
    return [ground, *_grid(height, width)]


def shaded_cell(x: float, y: float) -> str:
    """Returns the shade of a square cell around (x, y)."""
    left, top = x - CELL_SIZE / 2, y - CELL_SIZE / 2
    return elements.rectangle(
        left + 1, top + 1, CELL_SIZE - 2, CELL_SIZE - 2, "#fdebb0"
    )


MARKS = Style(
    ground=_paper,
    pieces=(
        lambda x, y: elements.cross(x, y, 16, BLUE, 8),
        lambda x, y: elements.circle(x, y, 18, ORANGE, 8),
    ),
    names=("crosses", "rings"),
    mark=shaded_cell,
    mark_is_below=True,
)


def _back(height: int, width: int) -> list[str]:
    size = _square_size(height, width)
    return [elements.rectangle(1, 1, size[0] - 2, size[1] - 2, "#123a69", radius=14)]


def _holes(height: int, width: int) -> list[str]:
    """Returns the front of a board, with a hole over each cell."""
    centers = [
        _square_center(row, column) for row in range(height) for column in range(width)
    ]
    size = _square_size(height, width)
    return [elements.plate(*size, "#2a66ad", radius=14, holes=centers, hole_radius=25)]


DISCS = Style(
    ground=_back,
    pieces=(
        lambda x, y: (
            elements.disc(x, y, 27, YELLOW) + elements.cross(x, y, 9, "#8d7f00", 5)
        ),
        lambda x, y: (
            elements.disc(x, y, 27, ORANGE) + elements.circle(x, y, 11, "#ffd9bd", 5)
        ),
    ),
    names=("yellow discs", "orange discs"),
    mark=lambda x, y: elements.circle(x, y, 28, "white", 4),
    front=_holes,
)


def _wood(height: int, width: int) -> list[str]:
    """Returns a board on whose crossing lines the stones lie."""
    right, bottom = _square_size(height, width)
    half = CELL_SIZE / 2
    across, down = right - CELL_SIZE, bottom - CELL_SIZE
    return [
        elements.rectangle(0, 0, right, bottom, _WOOD, radius=6),
        *(
            elements.line(half, half + row * CELL_SIZE, across, 0, _WOOD_LINE)
            for row in range(height)
        ),
        *(
            elements.line(half + column * CELL_SIZE, half, 0, down, _WOOD_LINE)
            for column in range(width)
        ),
        *(
            elements.disc(*_square_center(row, column), 5, _WOOD_LINE)
            for row in star_lines(height)
            for column in star_lines(width)
        ),
    ]


def star_lines(length: int) -> list[int]:
    """Returns the lines whose crossings carry the small points of a Go board."""
    if length < 7:
        return []
    edge = 2 if length < 12 else 3
    middle = [length // 2] if length % 2 else []
    return sorted({edge, *middle, length - 1 - edge})


STONES = Style(
    ground=_wood,
    pieces=(
        lambda x, y: elements.disc(x, y, 29, "#1d1d1f"),
        lambda x, y: elements.disc(x, y, 29, "#fbfaf7", edge=INK),
    ),
    names=("black stones", "white stones"),
    mark=lambda x, y: elements.circle(x, y, 13, "#e5484d", 4),
)


def _felt(height: int, width: int) -> list[str]:
    size = _square_size(height, width)
    ground = elements.rectangle(0, 0, *size, "#74b58c", radius=6)
    return [ground, *_grid(height, width, "#3f7d58")]


OTHELLO = Style(
    ground=_felt,
    pieces=(
        lambda x, y: elements.disc(x, y, 26, "#1d1d1f"),
        lambda x, y: elements.disc(x, y, 26, "#fbfaf7", edge=INK),
    ),
    names=("black discs", "white discs"),
    mark=lambda x, y: elements.disc(x, y, 6, "#e5484d"),
)


def _checkers(height: int, width: int) -> list[str]:
    """Returns a board of light and dark cells, the one at the bottom left dark."""
    return [
        elements.rectangle(0, 0, *_square_size(height, width), "#f2e6cf"),
        *(
            elements.rectangle(
                column * CELL_SIZE, row * CELL_SIZE, CELL_SIZE, CELL_SIZE, "#cfb088"
            )
            for row in range(height)
            for column in range(width)
            if (height - 1 - row + column) % 2 == 0
        ),
    ]


def _man(x: float, y: float, color: str, edge: str) -> str:
    """Returns a pawn: a foot, a body that narrows upwards, and a head."""
    outline = [(-17, 22), (-17, 17), (-12, 15), (-5, -4), (5, -4), (12, 15), (17, 17)]
    points = [(x + right, y + down) for right, down in [*outline, (17, 22)]]
    return elements.polygon(points, color, edge) + elements.disc(
        x, y - 12, 10, color, edge
    )


MEN = Style(
    ground=_checkers,
    pieces=(
        lambda x, y: _man(x, y, "#fbfaf7", INK),
        lambda x, y: _man(x, y, "#2b2b30", "#fbfaf7"),
    ),
    names=("white men", "black men"),
    mark=shaded_cell,
    mark_is_below=True,
    is_two_sided=True,
)


# A rhombus of hexagons, whose sides belong to the players.
_PITCH = 72  # between neighbors
_ROW_PITCH = _PITCH * math.sqrt(3) / 2
_BORDER = 0.95  # cells between the centers of the outer cells and the end of the board
_FIRST, _SECOND = BLUE, "#f2b632"


def _at(row: float, column: float) -> tuple[float, float]:
    across = column + _BORDER + (row + _BORDER) / 2
    return across * _PITCH, (row + _BORDER) * _ROW_PITCH


def _extent(height: int, width: int) -> tuple[float, float]:
    return _at(height - 1 + _BORDER, width - 1 + _BORDER)


def _above(_height: int, column: int) -> tuple[float, float]:
    return _at(0, column)[0], -15


def _left_of(row: int) -> tuple[float, float]:
    x, y = _at(row, -_BORDER)
    return x - 16, y


def _rhombus(height: int, width: int) -> list[str]:
    """Returns the cells, and behind them a rhombus that shows whose sides are whose."""
    middle = _at((height - 1) / 2, (width - 1) / 2)
    top, left = -_BORDER, -_BORDER
    bottom, right = height - 1 + _BORDER, width - 1 + _BORDER
    corners = [(top, left), (top, right), (bottom, right), (bottom, left)]
    sides = [
        elements.polygon(
            [
                _at(*corners[side]),
                _at(*corners[(side + 1) % 4]),
                middle,
            ],
            color,
            edge=INK,
        )
        for side, color in enumerate((_FIRST, _SECOND, _FIRST, _SECOND))
    ]
    cells = [
        _hexagon(*_at(row, column)) for row in range(height) for column in range(width)
    ]
    return [*sides, *cells]


def _hexagon(x: float, y: float) -> str:
    radius = _PITCH / math.sqrt(3)
    angles = [math.pi * (1 / 6 + corner / 3) for corner in range(6)]
    corners = [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]
    return elements.polygon(corners, "#faf9f6", edge="#8a949e")


HEXAGONS = Style(
    ground=_rhombus,
    pieces=(
        lambda x, y: (
            elements.disc(x, y, 25, _FIRST) + elements.cross(x, y, 9, "#d3e9f7", 5)
        ),
        lambda x, y: (
            elements.disc(x, y, 25, _SECOND) + elements.circle(x, y, 11, "#7a5600", 5)
        ),
    ),
    names=("blue discs from top to bottom", "yellow discs from left to right"),
    mark=lambda x, y: elements.circle(x, y, 28, INK, 4),
    center=_at,
    size=_extent,
    column_label=_above,
    row_label=_left_of,
    text_indent=1,
)


# Pits with seeds. The kind of piece is the number of seeds in the pit.
_MAX_SEEDS = 84
SEED_LETTERS = (string.digits + string.ascii_letters + string.punctuation)[
    : _MAX_SEEDS + 1
]
_PIT, _SEED, _NO_SEED = "#5f4220", "#f4dfb2", "#a98a5c"
_DRAWN_SEEDS = 16  # a full ring


def _pits(height: int, width: int) -> list[str]:
    """Returns a board with a pit in each cell, and with a store in place of the cells
    of each outer column."""
    right, bottom = _square_size(height, width)
    return [
        elements.rectangle(0, 0, right, bottom, _WOOD, radius=24),
        *(
            elements.rectangle(
                x + 4, 4, CELL_SIZE - 8, bottom - 8, _PIT, radius=CELL_SIZE / 2 - 4
            )
            for x in (0, right - CELL_SIZE)
        ),
        *(
            elements.disc(*_square_center(row, column), 28, _PIT)
            for row in range(height)
            for column in range(1, width - 1)
        ),
    ]


def _seeds(count: int, x: float, y: float) -> str:
    """Returns the number of seeds, in a ring of as many seeds."""
    ring, drawn = "", min(count, _DRAWN_SEEDS)
    for seed in range(drawn):
        angle = math.tau * (seed / drawn - 0.25)
        right, down = round(22 * math.cos(angle), 1), round(22 * math.sin(angle), 1)
        ring += elements.disc(x + right, y + down, 3.4, _SEED)
    return ring + _bold(x, y, str(count), _SEED if count else _NO_SEED, 20)


def _bold(x: float, y: float, words: str, color: str, size: int) -> str:
    """Returns a line of bold text centered at (x, y)."""
    return (
        f'<text x="{x:g}" y="{y:g}" dy=".35em" font-size="{size}" '
        f'font-weight="bold" fill="{color}" text-anchor="middle">{words}</text>'
    )


SEEDS = Style(
    ground=_pits,
    pieces=tuple(functools.partial(_seeds, count) for count in range(_MAX_SEEDS + 1)),
    names=(
        "empty pits",
        "pits with 1 seed",
        *(f"pits with {count} seeds" for count in range(2, _MAX_SEEDS + 1)),
    ),
    mark=lambda x, y: elements.circle(x, y, 29, "white", 4),
    sides=(Side("southern pits", BLUE), Side("northern pits", ORANGE)),
)


# The Royal Game of Ur: two blocks of squares and a bridge; outer rows lack two squares,
# where the pieces at the start and at home lie. Dice are in a column of their own.
_UR_COLUMNS = 8
UR_STARTS, UR_HOMES = ((0, 4), (2, 4)), ((0, 5), (2, 5))
UR_ROSETTES = ((0, 0), (2, 0), (1, 3), (0, 6), (2, 6))
UR_ROLLS = tuple((row, _UR_COLUMNS) for row in range(3))
_MAX_UR_PIECES, _UR_DICE = 7, 4
UR_LETTERS = string.ascii_uppercase[:12] + string.ascii_lowercase[:12]
_SHELL, _LAPIS, _CARNELIAN = "#f1e5c8", "#2f5d8a", "#b5452c"
_LIGHT, _DARK = "#fbfaf7", "#2b2b30"


def _ur_board(height: int, width: int) -> list[str]:
    """Returns the squares with their ornaments, and the names of the other cells."""
    drawn = [
        elements.rectangle(
            left * CELL_SIZE - 5,
            top * CELL_SIZE - 5,
            across * CELL_SIZE + 10,
            down * CELL_SIZE + 10,
            "#4a3021",
            radius=10,
        )
        for left, top, across, down in ((0, 0, 4, 3), (6, 0, 2, 3), (3, 1, 4, 1))
    ]
    for row in range(height):
        for column in range(min(width, _UR_COLUMNS)):
            x, y = _square_center(row, column)
            if (row, column) in (*UR_STARTS, *UR_HOMES):
                name = "start" if (row, column) in UR_STARTS else "home"
                drawn.append(elements.text(x, y + (-24 if row == 0 else 31), name, 10))
            else:
                drawn.append(
                    elements.rectangle(x - 29, y - 29, 58, 58, _SHELL, radius=5)
                )
                is_rosette = (row, column) in UR_ROSETTES
                drawn.append(_rosette(x, y) if is_rosette else _four_points(x, y))
    return drawn


def _rosette(x: float, y: float) -> str:
    """Returns a flower of eight petals."""
    petals = "".join(
        f'<ellipse cx="{x:g}" cy="{y - 15:g}" rx="5.5" ry="10" '
        f'fill="{_CARNELIAN if turn % 2 else _LAPIS}" '
        f'transform="rotate({45 * turn} {x:g} {y:g})"/>'
        for turn in range(8)
    )
    return petals + elements.disc(x, y, 6, YELLOW, edge=INK)


def _four_points(x: float, y: float) -> str:
    """Returns a frame around four points."""
    points = [(-13, -13), (13, -13), (-13, 13), (13, 13)]
    return (
        f'<rect x="{x - 24:g}" y="{y - 24:g}" width="48" height="48" rx="3" '
        f'fill="none" stroke="{_LAPIS}" stroke-width="1.5"/>'
    ) + "".join(elements.disc(x + right, y + down, 4, _LAPIS) for right, down in points)


def _ur_pieces(color: str, line: str, number: int, x: float, y: float) -> str:
    """Returns a piece with five points, or a pile of pieces with their number."""
    if number == 1:
        points = [(0, 0), (-8, -8), (8, -8), (-8, 8), (8, 8)]
        return elements.disc(x, y, 21, color, edge=line) + "".join(
            elements.disc(x + right, y + down, 2.6, line) for right, down in points
        )
    pile = "".join(elements.disc(x, y + down, 20, color, line) for down in (3, 0, -3))
    return pile + _bold(x, y - 3, str(number), line, 22)


def _ur_roll(color: str, line: str, roll: int, x: float, y: float) -> str:
    """Returns a roll, and four dice of which as many are marked."""
    drawn = elements.rectangle(x - 27, y - 27, 54, 54, line, radius=9)
    drawn += elements.rectangle(x - 25.5, y - 25.5, 51, 51, color, radius=8)
    drawn += _bold(x, y - 8, str(roll), line, 26)
    for die in range(_UR_DICE):
        left = x + 12 * (die - (_UR_DICE - 1) / 2)
        corners = [(left - 5, y + 19), (left + 5, y + 19), (left, y + 10)]
        drawn += elements.polygon(corners, line if die < roll else color, line)
    return drawn


_UR_SIDES = (("white", _LIGHT, _DARK), ("black", _DARK, _LIGHT))
UR = Style(
    ground=_ur_board,
    pieces=tuple(
        functools.partial(draw, color, line, number)
        for _, color, line in _UR_SIDES
        for draw, numbers in (
            (_ur_pieces, range(1, _MAX_UR_PIECES + 1)),
            (_ur_roll, range(_UR_DICE + 1)),
        )
        for number in numbers
    ),
    names=tuple(
        name
        for side, *_ in _UR_SIDES
        for name in (
            f"{side} pieces",
            *(f"piles of {n} {side} pieces" for n in range(2, _MAX_UR_PIECES + 1)),
            *(f"rolls of {n} by {side}" for n in range(_UR_DICE + 1)),
        )
    ),
    mark=lambda x, y: elements.circle(x, y, 26, "#e5484d", 4),
    sides=(Side("white pieces", "#d9d4c7"), Side("black pieces", _DARK)),
)


# Chessmen of our own, SVG paths around the middle of a cell: outlines, and what is
# drawn inside them.
_OUTLINES = {
    "pawn": "M-13 22h26v-5c-5-3-8-8-8-15h4v-4h-4a8 8 0 1 0-10 0h-4v4h4c0 7-3 12-8 15z",
    "knight": "M-13 22h28c2-16 0-32-14-37l-3-6-4 6c-7 3-10 10-13 17l4 5"
    "c5-1 8-3 11-5 0 7-9 9-9 20z",
    "bishop": "M-15 22h30v-6h-10l-1-5c9-6 10-15 3-22l-4-4a4 4 0 1 0-6 0l-4 4"
    "c-7 7-6 16 3 22l-1 5h-10z",
    "rook": "M-16 22h32v-6h-4l-2-20h4v-14h-7v5h-4v-5h-6v5h-4v-5h-7v14h4l-2 20h-4z",
    "queen": "M-15 22h30v-5l-3-3 6-22-9 10-3-18-6 16-6-16-3 18-9-10 6 22-3 3z",
    "king": "M-15 22h30v-6l-3-2c8-6 9-18-1-20-5-1-8 2-9 5v-9h4v-4h-4v-4h-4v4h-4v4h4v9"
    "c-1-3-4-6-9-5-10 2-9 14-1 20l-3 2z",
}
_DETAILS = {
    "pawn": "M-8 17h16",
    "knight": "M-6-8l2 2M-8 17h18",
    "bishop": "M0-9v12M-5-4h10M-9 17h18",
    "rook": "M-7-4h14M-9 17h18",
    "queen": "M-10 13h20M-10 17h20",
    "king": "M-10 13h20M-10 17h20M0-1v10",
}


def _chessman(kind: str, color: str, line: str, x: float, y: float) -> str:
    return (
        f'<g transform="translate({x:g} {y:g})" stroke="{line}" stroke-width="1.5" '
        f'stroke-linejoin="round" stroke-linecap="round">'
        f'<path d="{_OUTLINES[kind]}" fill="{color}"/>'
        f'<path d="{_DETAILS[kind]}" fill="none"/></g>'
    )


def _chessmen(color: str, line: str) -> list[functools.partial[str]]:
    return [functools.partial(_chessman, kind, color, line) for kind in _OUTLINES]


CHESSMEN = Style(
    ground=MEN.ground,
    pieces=(*_chessmen("#fdfcf8", INK), *_chessmen("#2b2b30", "#f2efe6")),
    names=tuple(
        f"{color} {kind}s" for color in ("white", "black") for kind in _OUTLINES
    ),
    mark=shaded_cell,
    mark_is_below=True,
    is_two_sided=True,
)
