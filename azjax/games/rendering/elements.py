"""The shapes that pictures are made of, as SVG elements.

Lengths are in pixels; (x, y) is a center or a top left corner, y grows downwards.
"""

import html
import math
from collections.abc import Iterable

Cell = tuple[int, int]  # row from the top, column from the left

# The colors of Okabe and Ito, which color-blind people tell apart.
BLUE, ORANGE, YELLOW = "#0072b2", "#d55e00", "#f0e442"
POLICY_COLORS = (BLUE, "#e69f00", "#009e73", "#cc79a7")
INK, PALE_INK, PAPER = "#26333f", "#66737f", "#faf9f6"


def rectangle(
    x: float, y: float, width: float, height: float, color: str, *, radius: float = 0
) -> str:
    """Returns a filled rectangle with its top left corner at (x, y)."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:.4g}" '
        f'rx="{radius}" fill="{color}"/>'
    )


def plate(
    width: float,
    height: float,
    color: str,
    *,
    radius: float,
    holes: Iterable[tuple[float, float]],
    hole_radius: float,
) -> str:
    """Returns a rectangle with rounded corners at (0, 0), and with round holes around
    the given centers."""
    r, h = radius, hole_radius
    corners = (
        f"M{r:g} 0H{width - r:g}a{r:g} {r:g} 0 0 1 {r:g} {r:g}"
        f"V{height - r:g}a{r:g} {r:g} 0 0 1 {-r:g} {r:g}"
        f"H{r:g}a{r:g} {r:g} 0 0 1 {-r:g} {-r:g}"
        f"V{r:g}a{r:g} {r:g} 0 0 1 {r:g} {-r:g}z"
    )
    arc = f"a{h:g} {h:g} 0 1 0"
    round_holes = "".join(
        f"M{x - h:g} {y:g}{arc} {2 * h:g} 0{arc} {-2 * h:g} 0z" for x, y in holes
    )
    return f'<path d="{corners}{round_holes}" fill="{color}" fill-rule="evenodd"/>'


def disc(x: float, y: float, radius: float, color: str, edge: str = "none") -> str:
    """Returns a filled circle, with a line around it unless `edge` is `none`."""
    line = "" if edge == "none" else f' stroke="{edge}" stroke-width="1.5"'
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{color}"{line}/>'


def circle(x: float, y: float, radius: float, color: str, thickness: float) -> str:
    """Returns a circle's line."""
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="none" '
        f'stroke="{color}" stroke-width="{thickness:g}"/>'
    )


def cross(x: float, y: float, arm: float, color: str, thickness: float) -> str:
    """Returns a diagonal cross."""
    return (
        f'<path d="M{x - arm:g} {y - arm:g}l{2 * arm:g} {2 * arm:g}'
        f'm0 {-2 * arm:g}l{-2 * arm:g} {2 * arm:g}" fill="none" '
        f'stroke="{color}" stroke-width="{thickness:g}" stroke-linecap="round"/>'
    )


def line(x: float, y: float, right: float, down: float, color: str = PALE_INK) -> str:
    """Returns a line from (x, y), so far to the right and down."""
    return (
        f'<path d="M{x:g} {y:g}l{right:g} {down:g}" stroke="{color}" '
        f'stroke-width="2" stroke-linecap="round"/>'
    )


def polygon(points: list[tuple[float, float]], color: str, edge: str) -> str:
    """Returns a filled polygon with a line around it."""
    corners = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
    return (
        f'<polygon points="{corners}" fill="{color}" stroke="{edge}" '
        f'stroke-width="1.5"/>'
    )


def text(x: float, y: float, words: str, size: int = 15, anchor: str = "middle") -> str:
    """Returns a line of text with its base line at y."""
    return (
        f'<text x="{x:g}" y="{y:.4g}" font-size="{size}" fill="{INK}" '
        f'text-anchor="{anchor}">{html.escape(words)}</text>'
    )


def label(x: float, y: float, words: str) -> str:
    """Returns a line of text centered at (x, y), for any font size."""
    return (
        f'<text x="{x:g}" y="{y:.4g}" dy=".333em" font-size="15" fill="{INK}" '
        f'text-anchor="middle">{html.escape(words)}</text>'
    )


def arrow(
    start: tuple[float, float],
    end: tuple[float, float],
    color: str,
    width: float,
    words: str,
) -> str:
    """Returns a half transparent arrow; `words` are its tooltip."""
    (x, y), (to_x, to_y) = start, end
    length = math.hypot(to_x - x, to_y - y) or 1.0
    right, down = (to_x - x) / length, (to_y - y) / length
    head = 9 + width
    neck_x, neck_y = to_x - head * right, to_y - head * down
    left_x, left_y = neck_x - head * down / 2, neck_y + head * right / 2
    return (
        f'<g opacity="0.75"><title>{html.escape(words)}</title>'
        f'<path d="M{x:.4g} {y:.4g}L{neck_x:.4g} {neck_y:.4g}" stroke="{color}" '
        f'stroke-width="{width:.3g}"/>'
        f'<path d="M{to_x:.4g} {to_y:.4g}L{left_x:.4g} {left_y:.4g}'
        f'l{head * down:.4g} {-head * right:.4g}z" fill="{color}"/></g>'
    )
