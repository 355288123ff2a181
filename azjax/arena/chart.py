"""Chart of tournament ratings with confidence intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from azjax.arena.tournament import Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHART_FILE = "ratings.png"
DOT, INK, PALE_INK, GRID = "#0072b2", "#26333f", "#66737f", "#e3e6e8"
_MARGIN = 0.08  # fraction of the rating range, on both sides
_REACH = 400  # Elo beyond the extreme ratings at which intervals are cut
_MAX_NAME = 44  # characters


def draw_chart(title: str, table: Sequence[Standing]) -> "Figure":
    """Draws the ratings of a tournament, the strongest player on top.

    Infinite intervals, of players that won or lost every game, are cut.
    """
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(9, 1.5 + 0.5 * len(table)),
        dpi=150,
        facecolor="white",
        layout="constrained",
    )
    axes = figure.add_subplot()
    # The axis spans the intervals, but at most `_REACH` beyond the ratings.
    elo = np.array([line.elo for line in table])
    low, high = np.array([line.interval for line in table]).T
    left = max(low.min(), elo.min() - _REACH)
    right = min(high.max(), elo.max() + _REACH)
    margin = _MARGIN * max(right - left, 1)
    axes.set_xlim(left - margin, right + margin)
    # For each player, from the top: the interval, the rating on it, and its number
    # above.
    places = np.arange(len(table))
    axes.hlines(places, low, high, color=DOT, alpha=0.3, linewidth=7)
    axes.plot(elo, places, "o", color=DOT, markersize=8, markeredgecolor="white")
    for place, line in zip(places, table, strict=True):
        axes.annotate(
            f"{line.elo:+.0f}",
            (line.elo, place),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            color=INK,
            fontsize=9,
        )
    axes.set_yticks(places, [shortened(line.name) for line in table])
    axes.set_ylim(len(table) - 0.5, -0.7)
    axes.set_xlabel("Elo, with 95% intervals", color=PALE_INK, fontsize=9)
    axes.set_title(title, loc="left", color=INK, fontsize=13, fontweight="bold", pad=10)
    style_axes(axes, grid="x")
    axes.tick_params(axis="y", labelcolor=INK, labelsize=10)
    return figure


def style_axes(axes: "Axes", grid: Literal["x", "y"] = "y") -> None:
    """Sets a panel's colors and the grid of one axis, and removes its frame."""
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=GRID, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(PALE_INK)
    axes.tick_params(colors=PALE_INK, labelsize=9, length=0)


def shortened(name: str) -> str:
    """Returns a name for a chart; the middle of a long one is left out."""
    if len(name) <= _MAX_NAME:
        return name
    half = _MAX_NAME // 2
    return f"{name[:half]}…{name[-half + 1 :]}"
