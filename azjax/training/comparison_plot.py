"""Picture of several runs' strength, over time and over positions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from azjax.arena.chart import INK, shortened, style_axes
from azjax.games import game_title
from azjax.training.comparison import Measure, SavedRun, measures
from azjax.training.metrics import SCORES
from azjax.training.plots import (
    OPPONENTS,
    count_axis,
    draw_interval,
    empty_figure,
    mistakes_axis,
    score_axis,
    subtitle,
    time_unit,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINESTYLES = ("-", "--", ":")  # of runs with the same color
_LEGEND_WIDTH = 90  # characters


def draw_comparison(runs: Sequence[SavedRun]) -> "Figure":
    """Draws the strength of runs with intervals: a row of panels for each measure, over
    time and over positions.

    Args:
        runs: of one game.

    Raises:
        ValueError: no run has an evaluation.
    """
    found = measures(runs)
    if not found:
        raise ValueError("nothing to plot: no run has an evaluation")
    figure = empty_figure()
    names = {run.name: shortened(run.name) for run in runs if run.evaluations}
    columns = max(1, _LEGEND_WIDTH // (max(map(len, names.values())) + 6))
    figure.set_figheight(0.8 + 0.25 * -(-len(names) // columns) + 2.6 * len(found))
    panels = figure.subplots(len(found), 2, sharex="col", sharey="row", squeeze=False)
    units = {"seconds": time_unit, "positions": position_unit}
    for (counter, unit_of), column in zip(units.items(), panels.T, strict=True):
        evaluations = (row for run in runs for row in run.evaluations)
        most = max(row.counters[counter] for row in evaluations)
        unit, size = unit_of(most)
        for measure, axes in zip(found, column, strict=True):
            _draw_measure(axes, runs, measure, counter, size)
        count_axis(column[-1], unit, most / size)
    for measure, axes in zip(found, panels[:, 0], strict=True):
        subtitle(axes, f"{measure.label[0].upper()}{measure.label[1:]}")
    lines = {line.get_label(): line for axes in panels.flat for line in axes.lines}
    legend = figure.legend(
        [lines[name] for name in names],
        list(names.values()),
        title=f"{game_title(runs[0].config.game)}: {len(runs)} runs",
        title_fontproperties={"size": 14, "weight": "bold"},
        loc="outside upper left",
        alignment="left",
        ncols=columns,
        labelcolor=INK,
        fontsize=11,
        handlelength=3,
        frameon=False,
    )
    legend.get_title().set_color(INK)
    return figure


def _draw_measure(
    axes: "Axes",
    runs: Sequence[SavedRun],
    measure: Measure,
    counter: str,
    size: float,
) -> None:
    """Draws a measure of all runs that have it over a counter in units of `size`."""
    style_axes(axes)
    curves: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for number, run in enumerate(runs):
        rows = [row for row in run.evaluations if measure in row.rates]
        if rows:
            places = np.array([row.counters[counter] for row in rows])
            rates = np.array([row.rates[measure] for row in rows]).T
            curves[number] = places, rates
    rates = np.concatenate([rates for _, rates in curves.values()], axis=1)
    bottom = 0.0
    if measure.kind == SCORES:
        score_axis(axes, rates[1].min())
    else:
        bottom = mistakes_axis(axes, rates)
    for number, (places, rates) in curves.items():
        draw_interval(
            axes,
            places / size,
            rates,
            label=runs[number].name,
            color=OPPONENTS[number % len(OPPONENTS)],
            bottom=bottom,
            linestyle=_LINESTYLES[number // len(OPPONENTS) % len(_LINESTYLES)],
        )


def position_unit(most: float) -> tuple[str, float]:
    """Returns a readable unit for `most` positions, and its size in positions."""
    if most < 20_000:
        return "positions", 1.0
    if most < 20_000_000:
        return "thousand positions", 1e3
    return "million positions", 1e6
