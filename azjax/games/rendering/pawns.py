"""Chessmen, as outlines of our own."""

import functools

from azjax.games.rendering.elements import INK
from azjax.games.rendering.styles import MEN, Style, shaded_cell

# SVG paths around the middle of a cell: outlines, and what is drawn inside them.
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


def _man(kind: str, color: str, line: str, x: float, y: float) -> str:
    return (
        f'<g transform="translate({x:g} {y:g})" stroke="{line}" stroke-width="1.5" '
        f'stroke-linejoin="round" stroke-linecap="round">'
        f'<path d="{_OUTLINES[kind]}" fill="{color}"/>'
        f'<path d="{_DETAILS[kind]}" fill="none"/></g>'
    )


def _men(color: str, line: str) -> list[functools.partial[str]]:
    return [functools.partial(_man, kind, color, line) for kind in _OUTLINES]


CHESSMEN = Style(
    ground=MEN.ground,
    pieces=(*_men("#fdfcf8", INK), *_men("#2b2b30", "#f2efe6")),
    names=tuple(
        f"{color} {kind}s" for color in ("white", "black") for kind in _OUTLINES
    ),
    mark=shaded_cell,
    mark_is_below=True,
    is_two_sided=True,
)
