"""Compares runs of a game: settings, progress and strength."""

import dataclasses
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from azjax.arena.chart import INK, shortened, style_axes
from azjax.files import Directory, as_directory, resolved
from azjax.games import game_title
from azjax.networks import CustomModules
from azjax.players import Player, load_run
from azjax.players.serialization import load_q_player
from azjax.settings import Fraction, Within, check, flattened
from azjax.training.analysis.plots import (
    OPPONENTS,
    count_axis,
    draw_interval,
    empty_figure,
    grade_axis,
    grade_label,
    score_axis,
    score_label,
    subtitle,
    time_unit,
)
from azjax.training.config import QConfig, TrainConfig
from azjax.training.run.directory import CONFIG_FILE, read_config
from azjax.training.run.display import duration
from azjax.training.run.metrics import (
    METRICS_FILE,
    SCORES,
    Row,
    graded,
    iterate_metrics,
    percent_with_interval,
)
from azjax.training.run.open_run import PLAYER
from azjax.training.run.optimizer_identity import VERSION_INDEPENDENT
from azjax.training.run.saved_config import load_any_config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COUNTS = ("games", "positions", "updates")
COUNTERS = ("iteration", "seconds", *_COUNTS)
NONE = "-"  # a value that a run does not have
MAX_RATES = 10_000  # of a run's evaluations; with more, some are left out
MAX_NAME = 400  # characters of an opponent
_NOT_COMPARED = ("game", "run_dir", "notes", "repeat_schedule", "report")
_LINESTYLES = ("-", "--", ":")  # of runs with the same color
_LEGEND_WIDTH = 90  # characters
_OPTIONS = {"network.trunk.name": "trunk", "search.algorithm": "algorithm"}


class Measure(NamedTuple):
    """A rate that evaluations measure.

    kind: `mistakes` or `win_probability_lost` of a player, or `scores` against an
        opponent.
    name: the player or the opponent.
    """

    kind: str
    name: str

    @property
    def label(self) -> str:
        """The measure in words."""
        if self.kind == SCORES:
            return score_label(self.name)
        return grade_label(self.kind, self.name)


class Rate(NamedTuple):
    """A rate in [0, 1], with the ends of its 95% interval."""

    rate: float
    low: float
    high: float


class Evaluation(NamedTuple):
    """An evaluation of a run.

    counters: the `COUNTERS` of the run so far.
    rates: the rates by measure.
    """

    counters: dict[str, float]
    rates: dict[Measure, Rate]


@dataclasses.dataclass(frozen=True)
class SavedRun:
    """A run as its directory describes it.

    name: short name, different from those of the runs that it is compared with.
    directory: the run directory.
    config: its settings.
    settings: the settings that are compared, by the name of their option.
    counters: the newest `COUNTERS`; None without metrics.
    evaluations: in order of time; may be empty. Of very many, only every second one is
        kept, or every fourth, and so on, and the last one.
    """

    name: str
    directory: Directory
    config: TrainConfig | QConfig
    settings: Mapping[str, Any]
    counters: Mapping[str, float] | None
    evaluations: tuple[Evaluation, ...]

    def player(self, simulations: int, modules: CustomModules | None = None) -> Player:
        """Returns the trained player; a network of AlphaZero with search.

        Args:
            simulations: network evaluations per move of the search.
            modules: the user's own modules, for a network made with them.

        Raises:
            MissingModulesError: `modules` are required.
        """
        if isinstance(self.config, QConfig):
            return load_q_player(self.directory / PLAYER).player()
        return load_run(self.directory / PLAYER, modules=modules).player(simulations)


def read_runs(names: Sequence[str | os.PathLike[str]]) -> list[SavedRun]:
    """Reads two or more runs of one game from their directories, of any origin.

    Runs are named by the last part of their directory, or by all of it where that is
    not unique. Malformed rows of the metrics are left out, also those whose names
    cannot be printed or have more than `MAX_NAME` characters.
    """
    if len(names) < 2:
        raise ValueError(f"a comparison requires at least two runs: {len(names)}")
    directories = [as_directory(name) for name in names]
    places = [resolved(directory) for directory in directories]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ValueError(f"the run {names[number]} is given twice")
    shown = [place.name for place in places]
    if len(set(shown)) < len(shown):
        shown = [os.fspath(name) for name in names]
    runs = list(map(read_run, shown, directories))
    for run in runs[1:]:
        if run.config.game != runs[0].config.game:
            raise ValueError(
                f"the runs must be of one game: {runs[0].directory} is of "
                f"{runs[0].config.game}, {run.directory} is of {run.config.game}"
            )
    return runs


def read_run(name: str, directory: Directory) -> SavedRun:
    """Reads a run from its directory, of any origin; see `read_runs`."""
    config = load_any_config(directory)
    content = read_config(directory / CONFIG_FILE)
    values = {"kind": "alphazero", **config.to_json()}
    # What the user replaced in Python: hooks, and the optimizer if not the default one.
    optimizer = content.get("optimizer")
    if not isinstance(optimizer, dict):
        optimizer = {}
    values["optimizer"] = {name: optimizer.get(name) for name in VERSION_INDEPENDENT}
    values["hooks"] = content.get("hooks")
    for key in _NOT_COMPARED:
        values.pop(key, None)
    counters, evaluations, last = None, [], None
    number, distance, num_rates = 0, 1, 0
    for row in iterate_metrics(directory / METRICS_FILE):
        counters = _counters(row) or counters
        found = _evaluation(row) if row["kind"] == "evaluation" else None
        if found is None:
            continue
        last = found
        if number % distance == 0:
            evaluations.append(found)
            num_rates += len(found.rates)
        number += 1
        if num_rates > MAX_RATES:
            evaluations, distance = evaluations[::2], 2 * distance
            num_rates = sum(len(evaluation.rates) for evaluation in evaluations)
    if last is not None and evaluations[-1] is not last:
        evaluations.append(last)
    return SavedRun(
        name,
        directory,
        config,
        {
            _OPTIONS.get(name, name).replace("_", "-"): value
            for name, value in flattened(values)
        },
        counters,
        tuple(evaluations),
    )


def _counters(row: Row) -> dict[str, float] | None:
    """Returns the counters of a row of metrics; None if it is malformed."""
    try:
        for name in COUNTERS:
            check(name, row[name], Annotated[float, Within(ge=0)])
    except (KeyError, ValueError):
        return None
    return {name: row[name] for name in COUNTERS}


def _evaluation(row: Row) -> Evaluation | None:
    """Returns the evaluation in a row of metrics; None if it is malformed."""
    counters = _counters(row)
    try:
        kind, names = graded(row)
        rates = {Measure(kind, name): _rate(row, f"{name}_{kind}") for name in names}
        for name, score in row.get(SCORES, {}).items():
            rates[Measure(SCORES, name)] = _rate(score, "score")
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if not all(len(name) <= MAX_NAME and name.isprintable() for _, name in rates):
        return None
    return Evaluation(counters, rates) if counters and rates else None


def _rate(row: Row, key: str) -> Rate:
    names = (key, f"{key}_low", f"{key}_high")
    for name in names:
        check(name, row[name], Fraction)
    return Rate(*(row[name] for name in names))


def differing_settings(runs: Sequence[SavedRun]) -> dict[str, list[Any]]:
    """Returns the settings that differ between runs: by name the value of each run,
    None where a run has no such setting.

    Of runs of several algorithms, only the settings that all have are compared.
    """
    names = dict.fromkeys(itertools.chain(*(run.settings for run in runs)))
    if len({type(run.config) for run in runs}) > 1:
        names = [name for name in names if all(name in run.settings for run in runs)]
    sections = list(dict.fromkeys(name.partition(".")[0] for name in names))
    names = sorted(names, key=lambda name: sections.index(name.partition(".")[0]))
    values = {name: [run.settings.get(name) for run in runs] for name in names}
    return {
        name: found
        for name, found in values.items()
        if any(value != found[0] for value in found)
    }


def measures(runs: Sequence[SavedRun]) -> list[Measure]:
    """Returns the measures of all evaluations, grades first."""
    found = dict.fromkeys(
        measure
        for run in runs
        for evaluation in run.evaluations
        for measure in evaluation.rates
    )
    return sorted(found, key=lambda measure: measure.kind == SCORES)


def sections(
    runs: Sequence[SavedRun],
) -> list[tuple[str, dict[str, list[str]]]]:
    """Returns the comparison as texts: for each section a heading, and by name the text
    of each run."""
    differing = {
        name: list(map(_setting_text, values))
        for name, values in differing_settings(runs).items()
    }
    rows = [run.counters for run in runs]
    times = [duration(row["seconds"]) if row else NONE for row in rows]
    training = {"training time": times}
    for label, name in zip(
        ("iterations", *_COUNTS), ("iteration", *_COUNTS), strict=True
    ):
        training[label] = [f"{row[name]:,}" if row else NONE for row in rows]
    last = [run.evaluations[-1] if run.evaluations else None for run in runs]
    strength: dict[str, list[str]] = {}
    if any(last):
        strength["after"] = [
            f"iteration {row.counters['iteration']:,}, "
            f"{duration(row.counters['seconds'])}"
            if row
            else NONE
            for row in last
        ]
    for measure in measures(runs):
        rates = [row.rates.get(measure) if row else None for row in last]
        strength[measure.label] = [
            percent_with_interval(measure.kind, *rate) if rate else NONE
            for rate in rates
        ]
    return [
        ("settings that differ" if differing else "no settings differ", differing),
        ("training", training),
        ("last evaluation" if strength else "no evaluations", strength),
    ]


def _setting_text(value: object) -> str:
    """Returns a setting as on the command line."""
    if value is None:
        return NONE
    if isinstance(value, list | tuple):
        return " ".join(map(_setting_text, value)) or NONE
    return value if isinstance(value, str) else json.dumps(value)


def to_json(runs: Sequence[SavedRun]) -> dict[str, Any]:
    """Returns the comparison as JSON values, as `azjax compare --json` prints it."""

    def last_evaluation(run: SavedRun) -> dict[str, Any] | None:
        if not run.evaluations:
            return None
        rates: dict[str, dict[str, Any]] = {"mistakes": {}, SCORES: {}}
        for measure, rate in run.evaluations[-1].rates.items():
            rates.setdefault(measure.kind, {})[measure.name] = rate._asdict()
        return {**run.evaluations[-1].counters, **rates}

    return {
        "game": runs[0].config.game,
        "runs": [
            {
                "run": run.name,
                "directory": str(run.directory),
                "counters": run.counters,
                "last_evaluation": last_evaluation(run),
            }
            for run in runs
        ],
        "differing_settings": differing_settings(runs),
    }


def draw_comparison(runs: Sequence[SavedRun]) -> "Figure":
    """Draws the strength of runs of one game with intervals: a row of panels for each
    measure, over time and over positions."""
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
                bottom = grade_axis(axes, rates)
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


def position_unit(most: float) -> tuple[str, float]:
    """Returns a readable unit for `most` positions, and its size in positions."""
    if most < 20_000:
        return "positions", 1.0
    if most < 20_000_000:
        return "thousand positions", 1e3
    return "million positions", 1e6
