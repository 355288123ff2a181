"""Boards as text, and as SVG: complete documents on a ground of their own, hence the
same on light and on dark pages."""

import html
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from azjax.games.rendering import elements
from azjax.games.rendering.elements import PAPER, POLICY_COLORS, Cell
from azjax.games.rendering.styles import CELL_SIZE, Style

MARGIN = 30  # around the board, room for the labels
BAR_ROOM = 92  # above the board, for the bars of a policy over columns
LEGEND_ROOM = 32
SMALL = 12  # letters of probabilities
MAX_ARROWS = 5  # of each policy


class Arrow(NamedTuple):
    """A move from cell to cell, and the probability that it is made."""

    start: Cell
    end: Cell
    probability: float


class BoardParts(NamedTuple):
    """The parts of a board's pictures that no position changes, as SVG elements.

    box: left, top, width and height of the pictures.
    ground: what is behind the pieces.
    front: what is in front of them.
    pieces: each kind of piece, drawn around (0, 0).
    mark: the mark of a cell of the last move, drawn around (0, 0).
    mark_is_below: whether the pieces are drawn over the marks.
    centers: (x, y) of the cells, row by row.
    column_labels: (x, y) of the middle of each column's label.
    row_labels: (x, y) of the middle of each row's label, if rows have labels.
    is_two_sided: whether player 1 sees the board from the opposite side.
    """

    box: tuple[float, float, float, float]
    ground: str
    front: str
    pieces: tuple[str, ...]
    mark: str
    mark_is_below: bool
    centers: tuple[tuple[float, float], ...]
    column_labels: tuple[tuple[float, float], ...]
    row_labels: tuple[tuple[float, float], ...]
    is_two_sided: bool


Policies = Mapping[str, np.ndarray | Sequence[Arrow]]
"""Probabilities of moves, by the policy's name: `[W]`, drawn as bars above the columns;
`[H, W]`, as bars in empty cells; or arrows, of which the most probable are drawn."""


def board_to_text(
    board: np.ndarray,
    pieces: Sequence[str],
    *,
    marked: Collection[Cell],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    indent: int = 0,
    empty: str = ".",
) -> str:
    """Draws a board: a letter for each piece, `.` where empty, brackets where marked.

    Args:
        board: `[H, W]` int.
        pieces: the letters, or longer texts, by the number of the piece.
        marked: the cells of the last move.
        column_labels: W labels, written above the board.
        row_labels: H labels from the top row down, written to its left; none at all
            leave them out.
        indent: characters by which each row is shifted to the right of the one above.
        empty: the letter of an empty cell.
    """
    margin = max((len(label) for label in row_labels), default=0)
    width = max(map(len, pieces))
    texts = [f"{letter:>{width}}" for letter in (*pieces, empty)]
    lines = [" " * margin + "".join(f"{label:^{width + 2}}" for label in column_labels)]
    for row, cells in enumerate(board):
        label = row_labels[row] if row_labels else ""
        letters = (texts[piece] for piece in cells)
        symbols = (
            f"[{letter}]" if (row, column) in marked else f" {letter} "
            for column, letter in enumerate(letters)
        )
        shift = " " * (indent * row)
        lines.append(shift + f"{label:>{margin}}" + "".join(symbols))
    return "\n".join(line.rstrip() for line in lines)


def board_to_svg(
    style: Style,
    board: np.ndarray,
    *,
    marked: Collection[Cell],
    column_labels: Sequence[str],
    row_labels: Sequence[str],
    winning: Collection[Cell] = (),
    policies: Policies | None = None,
) -> str:
    """Draws a board as an SVG document.

    Args:
        style: how ground and pieces look.
        board: `[H, W]` int.
        marked: the cells of the last move.
        column_labels: W labels, written below the board.
        row_labels: H labels from the top row down, or none.
        winning: the cells that won the game, marked as well.
        policies: probabilities of the next move.
    """
    bars, cell_bars, arrows = _by_kind(policies or {}, board.shape)
    pieces = [
        style.pieces[board[row, column]](*style.center(row, column))
        for row, column in np.argwhere(board >= 0).tolist()
    ]
    marks = [style.mark(*style.center(*cell)) for cell in {*marked, *winning}]
    below, above = (marks, []) if style.mark_is_below else ([], marks)
    box = _box(
        style,
        *board.shape,
        above=BAR_ROOM if bars else 0,
        below=LEGEND_ROOM if policies else 0,
    )
    last, won = (
        " ".join(
            f"{column_labels[column]}{row_labels[row] if row_labels else ''}"
            for row, column in cells
        )
        for cells in (marked, winning)
    )
    counts = [
        f"{(board == piece).sum()} {name}"
        for piece, name in enumerate(style.names)
        if style.sides is None or (board == piece).any()
    ]
    title = (
        f"Board of {board.shape[0]} rows and {board.shape[1]} columns: "
        f"{', '.join(counts)}, last move {last or 'none'}"
        f"{', won by ' if won else ''}{won}"
    )
    places = [style.column_label(len(board), n) for n in range(len(column_labels))]
    places += [style.row_label(row) for row in range(len(row_labels))]
    labels = zip(places, (*column_labels, *row_labels), strict=True)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="{" ".join(f"{side:g}" for side in box)}" '
            f'width="{box[2]:g}" height="{box[3]:g}" '
            f'font-family="Helvetica, Arial, sans-serif" text-anchor="middle">',
            f"<title>{html.escape(title)}</title>",
            elements.rectangle(*box, PAPER, radius=18),
            *style.ground(*board.shape),
            *below,
            *pieces,
            *style.front(*board.shape),
            *above,
            *(elements.label(*place, label) for place, label in labels),
            *_column_bars(style, bars),
            *_cell_bars(style, cell_bars, board),
            *_arrows(style, arrows),
            *_legend(tuple(policies or ()), box[1] + box[3] - LEGEND_ROOM + 8),
            "</svg>",
            "",
        ]
    )


def board_parts(style: Style, height: int, width: int) -> BoardParts:
    """Returns the constant parts of the pictures of a board without policies.

    Args:
        style: how ground and pieces look.
        height: number of rows.
        width: number of columns.
    """
    rows, columns = range(height), range(width)
    return BoardParts(
        box=_box(style, height, width),
        ground="".join(style.ground(height, width)),
        front="".join(style.front(height, width)),
        pieces=tuple(draw(0.0, 0.0) for draw in style.pieces),
        mark=style.mark(0.0, 0.0),
        mark_is_below=style.mark_is_below,
        centers=tuple(style.center(*cell) for cell in itertools.product(rows, columns)),
        column_labels=tuple(style.column_label(height, column) for column in columns),
        row_labels=tuple(map(style.row_label, rows)),
        is_two_sided=style.is_two_sided,
    )


def policies_of_moves(
    policies: Mapping[str, np.ndarray],
    legal: np.ndarray,
    ends: Callable[[int], tuple[Cell, Cell]],
) -> Policies:
    """Returns an arrow for each legal move from cell to cell, by name; moves with the
    same ends, such as promotions, share one.

    Args:
        policies: by name, `[A]` probabilities.
        legal: `[A]` bool.
        ends: returns the first and the last cell of an action.
    """
    placed = {}
    for name, policy in policies.items():
        arrows: dict[tuple[Cell, Cell], float] = {}
        for action in np.flatnonzero(legal & (np.asarray(policy) > 0)).tolist():
            cells = ends(action)
            arrows[cells] = arrows.get(cells, 0.0) + float(policy[action])
        placed[name] = [
            Arrow(*cells, probability) for cells, probability in arrows.items()
        ]
    return placed


def _box(
    style: Style, height: int, width: int, *, above: float = 0, below: float = 0
) -> tuple[float, float, float, float]:
    """Returns left, top, width and height of a picture, with room for policies."""
    across, down = style.size(height, width)
    return (
        -MARGIN,
        -MARGIN - above,
        across + 2 * MARGIN,
        down + 2 * MARGIN + above + below,
    )


def _by_kind(
    policies: Policies, shape: tuple[int, ...]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, list[Arrow]]]:
    """Returns the policies over columns, over cells, and the arrows, by name."""
    columns, cells, arrows = {}, {}, {}
    for name, policy in policies.items():
        if not isinstance(policy, np.ndarray):
            arrows[name] = list(policy)
        elif policy.shape == shape[1:]:
            columns[name] = policy
        elif policy.shape == shape:
            cells[name] = policy
        else:
            raise ValueError(
                f"a policy has a probability for each column or cell of {shape}: "
                f"{name!r} has {policy.shape}"
            )
    return columns, cells, arrows


def _column_bars(style: Style, policies: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Draws a bar above each column; the most probable move has the tallest."""
    highest = max((p.max() for p in policies.values()), default=0.0) or 1.0
    pitch = (CELL_SIZE - 8) / max(len(policies), 1)
    for index, (policy, color) in enumerate(
        zip(policies.values(), _colors(), strict=False)
    ):
        for column, probability in enumerate(policy.tolist()):
            tall = (BAR_ROOM - 22) * probability / highest
            left = style.center(0, column)[0] - CELL_SIZE / 2 + 4 + index * pitch
            yield elements.rectangle(
                left + 2, -8 - tall, pitch - 4, tall, color, radius=2
            )
            yield elements.text(
                left + pitch / 2, -13 - tall, _percent(probability), SMALL
            )


def _cell_bars(
    style: Style, policies: Mapping[str, np.ndarray], board: np.ndarray
) -> Iterator[str]:
    """Draws a bar and a number in each empty cell that a policy gives 0.5% or more."""
    highest = max((p.max() for p in policies.values()), default=0.0) or 1.0
    pitch = (CELL_SIZE - 8) / max(len(policies), 1)
    for index, (policy, color) in enumerate(
        zip(policies.values(), _colors(), strict=False)
    ):
        for row, column in np.argwhere((board < 0) & (policy >= 0.005)).tolist():
            probability = float(policy[row, column])
            x, y = style.center(row, column)
            left = x - CELL_SIZE / 2 + 6
            bottom = y - CELL_SIZE / 2 + 4 + (index + 1) * pitch
            long = (CELL_SIZE - 12) * probability / highest
            yield elements.rectangle(left, bottom - 9, long, 6, color, radius=2)
            yield elements.text(
                left, bottom - 12, _percent(probability), SMALL, anchor="start"
            )


def _arrows(style: Style, policies: Mapping[str, list[Arrow]]) -> Iterator[str]:
    """Draws the most probable moves of each policy, the wider the more probable."""
    for (name, arrows), color in zip(policies.items(), _colors(), strict=False):
        likeliest = sorted(arrows, key=lambda arrow: -arrow.probability)[:MAX_ARROWS]
        for start, end, probability in reversed(likeliest):
            words = f"{name} {_percent(probability)}"
            width = 3 + 11 * probability
            yield elements.arrow(
                style.center(*start), style.center(*end), color, width, words
            )
            if probability >= 0.005:
                x, y = style.center(*end)
                yield elements.text(x, y + 5, _percent(probability), SMALL)


def _legend(names: Sequence[str], y: float) -> Iterator[str]:
    x = 4.0
    for name, color in zip(names, _colors(), strict=False):
        yield elements.rectangle(x, y, 12, 12, color, radius=2)
        yield elements.text(x + 18, y + 11, name, anchor="start")
        x += 42 + 8 * len(name)


def _colors() -> Iterator[str]:
    return itertools.cycle(POLICY_COLORS)


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f}%"
