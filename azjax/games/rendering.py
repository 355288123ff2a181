"""Boards as text and as SVG.

A board is an `[H, W]` int array, the top row first: 0 or 1 where that player has a
piece, -1 where the cell is empty. Player 0 is drawn as a cross and player 1 as a ring,
so that colour is never the only difference. The pictures are complete documents on a
ground of their own, hence the same on light and on dark pages.
"""

import html
import itertools
import re
import string
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

Cell = tuple[int, int]
Policies = Mapping[str, np.ndarray]

# The colours of Okabe and Ito, which colour-blind people tell apart.
BLUE, ORANGE, YELLOW = "#0072b2", "#d55e00", "#f0e442"
POLICY_COLOURS = (BLUE, "#e69f00", "#009e73", "#cc79a7")
INK, PALE_INK, PAPER = "#26333f", "#66737f", "#faf9f6"
CELL_SIZE = 64
MARGIN = 30  # around the board, room for the labels
BAR_ROOM = 92  # above the board, for the bars of a policy over columns
LEGEND_ROOM = 32


def cell_to_text(row: int, column: int, height: int) -> str:
    """Returns the name of a cell, column letter and row number: `a1` at the bottom
    left. `row` counts from the top."""
    return f"{string.ascii_lowercase[column]}{height - row}"


def text_to_cell(text: str, height: int, width: int) -> Cell:
    """Returns the (row, column) that `cell_to_text` names; capitals are allowed.

    Raises:
        ValueError: there is no such cell; the message says which there are.
    """
    match = re.fullmatch("([a-z])([1-9][0-9]?)", text.strip().lower())
    if match:
        column = string.ascii_lowercase.index(match[1])
        row = height - int(match[2])
        if row >= 0 and column < width:
            return row, column
    last = cell_to_text(0, width - 1, height)
    raise ValueError(f"{text.strip()!r} is no cell; cells are a1 to {last}")


def board_to_text(
    board: np.ndarray,
    last_cell: Cell | None,
    column_labels: Sequence[str],
    row_labels: Sequence[str] | None = None,
) -> str:
    """Draws a board in ASCII: `X` and `O`, `.` where empty, the last move in brackets.

    Args:
        board: `[H, W]` int.
        last_cell: (row, column) of the last move, if there was one.
        column_labels: W labels, written above the board.
        row_labels: H labels from the top row down, written to its left.
    """
    indent = max((len(label) for label in row_labels or ()), default=0)
    lines = [" " * indent + "".join(f"{label:^3}" for label in column_labels)]
    for row, pieces in enumerate(board):
        label = row_labels[row] if row_labels else ""
        symbols = (
            f"[{'XO.'[piece]}]" if (row, column) == last_cell else f" {'XO.'[piece]} "
            for column, piece in enumerate(pieces)
        )
        lines.append(f"{label:>{indent}}" + "".join(symbols))
    return "\n".join(line.rstrip() for line in lines)


def discs_to_svg(
    board: np.ndarray,
    last_cell: Cell | None,
    column_labels: Sequence[str],
    row_labels: Sequence[str] | None = None,
    policies: Policies | None = None,
) -> str:
    """Draws discs in the round holes of an upright board.

    Args:
        board: `[H, W]` int.
        last_cell: (row, column) of the last move, if there was one; it gets a ring.
        column_labels: W labels.
        row_labels: H labels from the top row down.
        policies: by name, `[W]` or `[H, W]` probabilities of the next move: bars above
            the columns, or bars in the empty cells.
    """
    height, width = board.shape
    ground = _rectangle(
        0, 0, width * CELL_SIZE, height * CELL_SIZE, "#2a66ad", radius=14
    )
    draw = {-1: _hole, 0: _crossed_disc, 1: _ringed_disc}
    pieces = [
        draw[int(board[row, column])](*_centre(row, column))
        for row, column in np.ndindex(board.shape)
    ]
    mark = [] if last_cell is None else [_circle(*_centre(*last_cell), 28, "white", 4)]
    return _document(
        board,
        [ground, *pieces, *mark],
        last_cell=last_cell,
        column_labels=column_labels,
        row_labels=row_labels,
        policies=policies,
    )


def marks_to_svg(
    board: np.ndarray,
    last_cell: Cell | None,
    column_labels: Sequence[str],
    row_labels: Sequence[str] | None = None,
    policies: Policies | None = None,
) -> str:
    """Draws crosses and rings on a grid.

    The arguments are those of `discs_to_svg`; the last move's cell is shaded.
    """
    height, width = board.shape
    ground = _rectangle(0, 0, width * CELL_SIZE, height * CELL_SIZE, "white", radius=6)
    shade = []
    if last_cell is not None:
        row, column = last_cell
        shade.append(
            _rectangle(
                column * CELL_SIZE, row * CELL_SIZE, CELL_SIZE, CELL_SIZE, "#fdebb0"
            )
        )
    lines = [
        *(_line(x * CELL_SIZE, 0, 0, height * CELL_SIZE) for x in range(1, width)),
        *(_line(0, y * CELL_SIZE, width * CELL_SIZE, 0) for y in range(1, height)),
    ]
    draw = {
        0: lambda x, y: _cross(x, y, 16, BLUE, 8),
        1: lambda x, y: _circle(x, y, 18, ORANGE, 8),
    }
    pieces = [
        draw[int(board[row, column])](*_centre(row, column))
        for row, column in np.argwhere(board >= 0)
    ]
    return _document(
        board,
        [ground, *shade, *lines, *pieces],
        last_cell=last_cell,
        column_labels=column_labels,
        row_labels=row_labels,
        policies=policies,
    )


def _document(
    board: np.ndarray,
    elements: list[str],
    *,
    last_cell: Cell | None,
    column_labels: Sequence[str],
    row_labels: Sequence[str] | None,
    policies: Policies | None,
) -> str:
    """Puts the frame, the labels and the policies around a board drawn at (0, 0)."""
    height, width = (cells * CELL_SIZE for cells in board.shape)
    policies = {name: np.asarray(p, float) for name, p in (policies or {}).items()}
    if any(p.shape not in (board.shape, board.shape[1:]) for p in policies.values()):
        raise ValueError(
            f"a policy has a probability for each column or cell of {board.shape}: "
            f"{ {name: p.shape for name, p in policies.items()} }"
        )
    columns = {name: p for name, p in policies.items() if p.ndim == 1}
    cells = {name: p for name, p in policies.items() if p.ndim == 2}
    top = MARGIN + (BAR_ROOM if columns else 0)
    bottom = MARGIN + (LEGEND_ROOM if policies else 0)
    box = (-MARGIN, -top, width + 2 * MARGIN, height + top + bottom)
    last = "none" if last_cell is None else cell_to_text(*last_cell, board.shape[0])
    title = (
        f"Board of {board.shape[0]} rows and {board.shape[1]} columns: "
        f"{(board == 0).sum()} crosses, {(board == 1).sum()} rings, last move {last}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="{" ".join(map(str, box))}" width="{box[2]}" height="{box[3]}" '
            f'font-family="Helvetica, Arial, sans-serif" text-anchor="middle">',
            f"<title>{html.escape(title)}</title>",
            _rectangle(*box, PAPER, radius=18),
            *elements,
            *_labels(board.shape, column_labels, row_labels or ()),
            *_column_bars(columns),
            *_cell_bars(cells, board),
            *_legend(tuple(policies), height + MARGIN + 8),
            "</svg>",
            "",
        ]
    )


def _labels(
    shape: tuple[int, ...], columns: Sequence[str], rows: Sequence[str]
) -> Iterator[str]:
    for column, label in enumerate(columns):
        yield _text(_centre(0, column)[0], shape[0] * CELL_SIZE + 20, label)
    for row, label in enumerate(rows):
        yield _text(-15, _centre(row, 0)[1] + 5, label)


def _column_bars(policies: Policies) -> Iterator[str]:
    """Draws bars that stand above the columns; the tallest is the likeliest move."""
    highest = max((p.max() for p in policies.values()), default=0.0) or 1.0
    pitch = (CELL_SIZE - 8) / max(len(policies), 1)
    for index, (policy, colour) in enumerate(
        zip(policies.values(), _colours(), strict=False)
    ):
        for column, probability in enumerate(policy.tolist()):
            tall = (BAR_ROOM - 22) * probability / highest
            left = column * CELL_SIZE + 4 + index * pitch
            yield _rectangle(left + 2, -8 - tall, pitch - 4, tall, colour, radius=2)
            yield _text(left + pitch / 2, -13 - tall, _percent(probability), 12)


def _cell_bars(policies: Policies, board: np.ndarray) -> Iterator[str]:
    """Draws in each empty cell a bar and a number for every policy."""
    highest = max((p.max() for p in policies.values()), default=0.0) or 1.0
    pitch = (CELL_SIZE - 8) / max(len(policies), 1)
    for index, (policy, colour) in enumerate(
        zip(policies.values(), _colours(), strict=False)
    ):
        for row, column in np.argwhere(board < 0).tolist():
            probability = float(policy[row, column])
            left = column * CELL_SIZE + 6
            bottom = row * CELL_SIZE + 4 + (index + 1) * pitch
            long = (CELL_SIZE - 12) * probability / highest
            yield _rectangle(left, bottom - 9, long, 6, colour, radius=2)
            yield _text(left, bottom - 12, _percent(probability), 12, anchor="start")


def _legend(names: Sequence[str], y: float) -> Iterator[str]:
    x = 4.0
    for name, colour in zip(names, _colours(), strict=False):
        yield _rectangle(x, y, 12, 12, colour, radius=2)
        yield _text(x + 18, y + 11, name, anchor="start")
        x += 42 + 8 * len(name)


def _hole(x: float, y: float) -> str:
    return _disc(x, y, 25, "#123a69")


def _crossed_disc(x: float, y: float) -> str:
    return _disc(x, y, 25, YELLOW) + _cross(x, y, 9, "#8d7f00", 5)


def _ringed_disc(x: float, y: float) -> str:
    return _disc(x, y, 25, ORANGE) + _circle(x, y, 11, "#ffd9bd", 5)


def _centre(row: int, column: int) -> tuple[float, float]:
    return (column + 0.5) * CELL_SIZE, (row + 0.5) * CELL_SIZE


def _colours() -> Iterator[str]:
    return itertools.cycle(POLICY_COLOURS)


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f}%"


def _rectangle(
    x: float, y: float, width: float, height: float, colour: str, *, radius: float = 0
) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:.4g}" '
        f'rx="{radius}" fill="{colour}"/>'
    )


def _disc(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour}"/>'


def _circle(x: float, y: float, radius: float, colour: str, thickness: float) -> str:
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="none" '
        f'stroke="{colour}" stroke-width="{thickness:g}"/>'
    )


def _cross(x: float, y: float, arm: float, colour: str, thickness: float) -> str:
    return (
        f'<path d="M{x - arm:g} {y - arm:g}l{2 * arm:g} {2 * arm:g}'
        f'm0 {-2 * arm:g}l{-2 * arm:g} {2 * arm:g}" fill="none" '
        f'stroke="{colour}" stroke-width="{thickness:g}" stroke-linecap="round"/>'
    )


def _line(x: float, y: float, right: float, down: float) -> str:
    return (
        f'<path d="M{x:g} {y:g}l{right:g} {down:g}" stroke="{PALE_INK}" '
        f'stroke-width="2" stroke-linecap="round"/>'
    )


def _text(x: float, y: float, text: str, size: int = 15, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:g}" y="{y:.4g}" font-size="{size}" fill="{INK}" '
        f'text-anchor="{anchor}">{html.escape(text)}</text>'
    )
