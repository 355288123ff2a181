"""The learning curves of a run, drawn from its metrics."""

import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from azjax import games
from azjax.arena.chart import INK, PALE_INK, style_axes
from azjax.files import replace_file
from azjax.training.run.metrics import (
    METRICS_FILE,
    SCORES,
    Row,
    graded,
    losses,
    opponents,
    percent,
    read_metrics,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOT_FILE = "plots/learning.png"

Place = Literal["best", "upper right"]

# The color-blind-safe palette of Okabe and Ito.
NETWORK, SEARCH = "#0072b2", "#d55e00"
POLICY, VALUE = "#009e73", "#cc79a7"
POSITIONS, GAMES = "#009e73", "#e69f00"
OPPONENTS = (NETWORK, SEARCH, POLICY, VALUE, GAMES, "#56b4e9", "#000000")
PLAYERS = {"network": ("network alone", NETWORK), "search": ("with search", SEARCH)}
LOSSES = {"policy": POLICY, "value": VALUE}
_MARGIN = 0.015  # of the horizontal axis, on both sides: room for half a marker
_LEGEND_ROW = 0.22  # height of a row of the losses' legend, of that of the lines
LOGARITHMIC = "logarithmic scale"
OTHER_LOSSES = (NETWORK, SEARCH, GAMES, "#56b4e9", "#000000")


def grade_label(kind: str, player: str) -> str:
    """Names a grade of a player of a run."""
    return f"{kind.replace('_', ' ')}, {PLAYERS.get(player, (player,))[0]}"


def score_label(opponent: str) -> str:
    """Names the score that evaluations measure against an opponent."""
    return f"score, network alone against {opponent}"


def plot_learning(run_dir: Path, game: str | None = None) -> Path:
    """Draws `plots/learning.png` of a run with evaluations from its metrics; returns
    its path. The title names `game`, by default that of the run's `config.json`."""
    rows = read_metrics(run_dir / METRICS_FILE)
    if game is None:
        config = run_dir / "config.json"
        content = json.loads(config.read_text()) if config.exists() else {}
        game = str(content.get("game", run_dir.resolve().name))
    buffer = io.BytesIO()
    draw_learning(rows, games.game_title(game)).savefig(buffer, format="png")
    replace_file(run_dir / PLOT_FILE, buffer.getvalue())
    return run_dir / PLOT_FILE


def draw_learning(rows: Sequence[Row], title: str) -> "Figure":
    """Draws strength, losses and speed over time from rows of metrics, of which at
    least one is an evaluation.

    Strength is the grade in solved positions, if the game has any, besides the match
    scores; otherwise the scores alone.
    """
    evaluations = [row for row in rows if row["kind"] == "evaluation"]
    iterations = [row for row in rows if row["kind"] == "iteration"]
    if not evaluations:
        raise ValueError("nothing to plot: the run has no evaluation yet")
    longest = max(row["seconds"] for row in [*evaluations, *iterations])
    unit, seconds = time_unit(longest)
    figure = empty_figure()
    is_solved = any(map(_players, evaluations))
    has_scores = is_solved and bool(opponents(evaluations[-1]))
    heights = [1.75, 1.0, 1.0] if has_scores else [1.75, 1.0]
    figure.set_figheight(2.33 * sum(heights))
    panels = figure.subplot_mosaic(
        [
            ["strength", "strength"],
            *([["score", "score"]] if has_scores else []),
            ["loss", "speed"],
        ],
        height_ratios=heights,
    )
    for axes in panels.values():
        style_axes(axes)
        count_axis(axes, unit, longest / seconds)
    if is_solved:
        kind = _draw_grades(panels["strength"], evaluations, seconds)
        heading = f"{title}: {kind.replace('_', ' ')} against perfect play"
    else:
        _draw_scores(panels["strength"], evaluations, seconds, fontsize=11)
        heading = f"{title}: score of the network alone"
    if has_scores:
        subtitle(panels["score"], "Score of the network alone")
        _draw_scores(panels["score"], evaluations, seconds, fontsize=9)
    panels["strength"].set_title(
        heading, loc="left", color=INK, fontsize=14, fontweight="bold", pad=12
    )
    _draw_losses(panels["loss"], iterations, seconds)
    _draw_speed(panels["speed"], iterations, seconds)
    return figure


def empty_figure() -> "Figure":
    """Returns the figure of a run's plot, without panels."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(
        figsize=(9, 6.4),
        dpi=150,
        facecolor="white",
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, hspace=0.04, wspace=0.03),
    )


def time_unit(longest: float) -> tuple[str, float]:
    """Returns a readable time unit for `longest` seconds, and its length in seconds."""
    if longest < 120:
        return "seconds of training", 1.0
    if longest < 3 * 3600:
        return "minutes of training", 60.0
    return "hours of training", 3600.0


def count_axis(axes: "Axes", unit: str, longest: float) -> None:
    """Labels the horizontal axis with a unit and numbers from 0 to `longest`."""
    longest = longest or 1.0
    axes.set_xlim(-_MARGIN * longest, (1 + _MARGIN) * longest)
    axes.locator_params(axis="x", nbins=8, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel(unit, color=PALE_INK, fontsize=9)


def _players(row: Row) -> list[str]:
    """Returns the known players with a grade in an evaluation."""
    return [name for name in PLAYERS if name in graded(row)[1]]


def _draw_grades(axes: "Axes", evaluations: Sequence[Row], seconds: float) -> str:
    """Draws the grades of the players and returns their kind."""
    rows = [row for row in evaluations if _players(row)]
    kind, _ = graded(rows[-1])
    players = {name: PLAYERS[name] for row in rows for name in _players(row)}
    times = np.array([row["seconds"] for row in rows]) / seconds
    rates = {player: _rates(rows, f"{player}_{kind}") for player in players}
    bottom = grade_axis(axes, np.concatenate([*rates.values()], axis=1))
    for player, (label, color) in players.items():
        draw_interval(
            axes,
            times,
            rates[player],
            label=f"{label}: {_change(kind, rates[player])}",
            color=color,
            bottom=bottom,
        )
    legend(axes, "best", fontsize=11)
    return kind


def grade_axis(axes: "Axes", rates: np.ndarray) -> float:
    """Scales the vertical axis for grades in percent, given as `[3, N]` to
    `draw_interval`. Returns its lower end."""
    rate, _, high = rates
    smallest = 100 * min(rate[rate > 0], default=0.01)
    if (rate == 0).any():
        axes.set_yscale("symlog", linthresh=smallest, linscale=0.4)
        bottom, label = 0.0, f"logarithmic from {smallest:.2g}% up"
    else:
        axes.set_yscale("log")
        bottom, label = smallest / 2, LOGARITHMIC
    axes.set_ylabel(label, color=PALE_INK, fontsize=9)
    ticks = [digit * 10.0**power for power in range(-4, 3) for digit in (1, 2, 5)]
    # The scale is linear near 0, where labels would overlap.
    with_zero = [0.0, *(tick for tick in ticks if tick >= smallest)]
    axes.set_yticks(with_zero if bottom == 0 else ticks)
    axes.set_ylim(bottom, 130 * max(np.nanmax(high), 0.01))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}%")
    return bottom


def _draw_scores(
    axes: "Axes", evaluations: Sequence[Row], seconds: float, *, fontsize: float
) -> None:
    """Draws the scores against the opponents of the newest evaluation."""
    names = opponents(evaluations[-1])
    if not names:
        no_data(axes)
        return
    lowest = 1.0
    for number, name in enumerate(names):
        rows = [row for row in evaluations if name in opponents(row)]
        times = np.array([row["seconds"] for row in rows]) / seconds
        rates = _rates([row[SCORES][name] for row in rows], "score")
        draw_interval(
            axes,
            times,
            rates,
            label=f"against {name}: {_change(SCORES, rates)}",
            color=OPPONENTS[number % len(OPPONENTS)],
            bottom=0.0,
        )
        lowest = min(lowest, rates[1].min())
    score_axis(axes, lowest)
    legend(axes, "best", fontsize=fontsize)


def score_axis(axes: "Axes", lowest: float) -> None:
    """Scales the vertical axis for scores in percent, which are at least `lowest`, in
    [0, 1]; marks equal strength."""
    axes.set_ylim(max(min(45.0, 100 * lowest - 3), -3), 103)
    axes.axhline(50, color=PALE_INK, linewidth=1, linestyle=(0, (2, 3)), zorder=1)
    axes.yaxis.set_major_formatter("{x:g}%")


def _rates(rows: Sequence[Row], key: str) -> np.ndarray:
    """Returns the rates of rows with their intervals, as in `draw_interval`; NaN where
    a row has none."""
    names = (key, f"{key}_low", f"{key}_high")
    return np.array([[row.get(name, np.nan) for row in rows] for name in names])


def _change(kind: str, rates: np.ndarray) -> str:
    """Returns the first and the last rate as text."""
    first, *rest = rates[0]
    return " → ".join(percent(kind, rate) for rate in (first, *rest[-1:]))


def draw_interval(
    axes: "Axes",
    places: np.ndarray,
    rates: np.ndarray,
    *,
    label: str,
    color: str,
    bottom: float,
    linestyle: str = "-",
) -> None:
    """Draws rates with their intervals, in percent, over `[N]` places.

    `rates` is `[3, N]`: the rates and the lower and upper ends of their intervals, in
    [0, 1]; `bottom` is the lower end of the vertical axis, in percent.
    """
    rate, low, high = 100 * rates
    low = np.maximum(low, bottom)
    axes.fill_between(places, low, high, color=color, alpha=0.18, linewidth=0)
    if len(places) == 1:  # an area of zero width is invisible
        axes.vlines(places, low, high, color=color)
    axes.plot(
        places,
        rate,
        color=color,
        linewidth=2.2,
        linestyle=linestyle,
        marker="o",
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.8,
        clip_on=False,
        zorder=3,
        label=label,
    )


def _draw_losses(axes: "Axes", iterations: Sequence[Row], seconds: float) -> None:
    subtitle(axes, "Losses")
    names = list(dict.fromkeys(name for row in iterations for name in losses(row)))
    if not names:
        no_data(axes)
        return
    others = itertools.cycle(OTHER_LOSSES)
    for name in names:
        rows = [row for row in iterations if name in losses(row)]
        times = np.array([row["seconds"] for row in rows]) / seconds
        values = np.array([row[f"{name}_loss"] for row in rows])
        color = LOSSES.get(name) or next(others)
        draw_line(axes, times, values, name, color)
    low, high = axes.get_ylim()
    legend_rows = -(-len(names) // 2)
    axes.set_ylim(low, high + _LEGEND_ROW * legend_rows * (high - low))
    legend(axes, "upper right", ncols=2)


def _draw_speed(axes: "Axes", iterations: Sequence[Row], seconds: float) -> None:
    subtitle(axes, "Self-play per second")
    if not iterations:
        no_data(axes)
        return
    columns = ("seconds", "positions", "games", "positions_per_second")
    times, positions, games, speed = (
        np.array([row[name] for row in iterations], float) for name in columns
    )
    times = times / seconds
    per_position = np.diff(games, prepend=0) / np.maximum(
        np.diff(positions, prepend=0), 1
    )
    axes.set_yscale("log")
    axes.set_ylabel(LOGARITHMIC, color=PALE_INK, fontsize=9)
    draw_line(axes, times, speed, "positions", POSITIONS)
    rate = per_position * speed
    # A logarithmic scale cannot show chunks without a finished game.
    draw_line(axes, times, np.where(rate > 0, rate, np.nan), "games", GAMES)
    low, high = axes.get_ylim()
    axes.set_ylim(low / 2, high * 4)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,.10g}")
    # Marks where the number of simulations changes.
    rows = [row for row in iterations if row.get("simulations") is not None]
    simulations = np.array([row["simulations"] for row in rows])
    stages = np.flatnonzero(np.diff(simulations, prepend=0))
    for index in stages[1:]:
        time = rows[index]["seconds"] / seconds
        axes.axvline(time, color=PALE_INK, linewidth=0.8, alpha=0.5)
    numbers = " → ".join(f"{simulations[index]:.0f}" for index in stages)
    if numbers:
        axes.set_title(
            f"{numbers} simulations", loc="right", color=PALE_INK, fontsize=9
        )
    legend(axes, "upper right", ncols=2)


def subtitle(axes: "Axes", text: str) -> None:
    """Writes a panel's title."""
    axes.set_title(text, loc="left", color=INK, fontsize=10.5, fontweight="bold")


def draw_line(
    axes: "Axes", times: np.ndarray, values: np.ndarray, label: str, color: str
) -> None:
    """Draws a line over time; a single value as a point."""
    marker = "o" if len(times) == 1 else ""
    axes.plot(times, values, color=color, linewidth=1.5, label=label, marker=marker)


def legend(axes: "Axes", place: Place, *, fontsize: float = 9, ncols: int = 1) -> None:
    """Draws a panel's legend."""
    axes.legend(
        loc=place,
        fontsize=fontsize,
        ncols=ncols,
        labelcolor=INK,
        facecolor="white",
        edgecolor="none",
        framealpha=0.85,
    )


def no_data(axes: "Axes") -> None:
    """Marks a panel as empty."""
    axes.set_yticks([])
    axes.text(
        0.5,
        0.5,
        "no data yet",
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=PALE_INK,
        fontsize=9,
    )
