"""The picture of a run of Q-learning, drawn from its metrics."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from azjax.training.metrics import METRICS_FILE, Row, read_metrics, replace_file
from azjax.training.plots import (
    INK,
    NETWORK,
    PLOT_FILE,
    POLICY,
    SEARCH,
    VALUE,
    draw_interval,
    draw_line,
    empty_figure,
    game_title,
    legend,
    no_data,
    style_axes,
    subtitle,
    time_axis,
    time_unit,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (NETWORK, SEARCH, POLICY, VALUE)


def plot_q_learning(run_dir: Path, game: str) -> Path:
    """Draws `plots/learning.png` of a run from its metrics, and returns its path.

    Args:
        run_dir: the run directory; needs at least one row in its metrics.
        game: stands in the title.
    """
    rows = read_metrics(run_dir / METRICS_FILE)
    buffer = io.BytesIO()
    draw_q_learning(rows, game_title(game)).savefig(buffer, format="png")
    replace_file(run_dir / PLOT_FILE, buffer.getvalue())
    return run_dir / PLOT_FILE


def draw_q_learning(rows: Sequence[Row], title: str) -> "Figure":
    """Draws the share of games not lost, the loss and the share of random moves.

    Args:
        rows: evaluations, at least one.
        title: what was learnt.
    """
    longest = max(row["seconds"] for row in rows)
    _, seconds = time_unit(longest)
    figure = empty_figure()
    panels = figure.subplot_mosaic(
        [["strength", "strength"], ["loss", "epsilon"]], height_ratios=[1.75, 1]
    )
    for axes in panels.values():
        style_axes(axes)
        time_axis(axes, longest)
    strength = panels["strength"]
    lowest = 1.0
    for index, opponent in enumerate(rows[-1]["matches"]):
        matches = [
            {"seconds": row["seconds"], **row["matches"][opponent]} for row in rows
        ]
        lowest = min(lowest, *(match["not_lost_low"] for match in matches))
        draw_interval(
            strength,
            matches,
            "not_lost",
            seconds,
            label=f"against {opponent}",
            colour=_COLOURS[index % len(_COLOURS)],
            bottom=0.0,
        )
    strength.set_ylim(min(85.0, max(0.0, 100 * lowest - 3)), 101)
    strength.yaxis.set_major_formatter("{x:g}%")
    strength.set_title(
        f"{title}: games not lost by Q-learning",
        loc="left",
        color=INK,
        fontsize=14,
        fontweight="bold",
        pad=12,
    )
    legend(strength, "best", fontsize=11)

    times = np.array([row["seconds"] for row in rows]) / seconds
    subtitle(panels["loss"], "Mean squared error of the values")
    learnt = [row["loss"] is not None for row in rows]
    if any(learnt):
        losses = np.array([row["loss"] for row in rows if row["loss"] is not None])
        panels["loss"].set_yscale("log")
        panels["loss"].minorticks_off()
        draw_line(panels["loss"], times[learnt], losses, "loss", VALUE)
    else:
        no_data(panels["loss"])
    subtitle(panels["epsilon"], "Share of random moves")
    epsilons = np.array([row["epsilon"] for row in rows])
    draw_line(panels["epsilon"], times, epsilons, "epsilon", POLICY)
    panels["epsilon"].set_ylim(0, 1.05)
    return figure
