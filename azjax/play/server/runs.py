"""Training runs for the page, read from untrusted files.

A run may have been copied from anywhere: the content of its files is checked here, and
never executed or used in a path.
"""

import functools
import io
import itertools
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from azjax import games
from azjax.files import open_inside, read_inside
from azjax.games import Game, game_title
from azjax.play.server.messages import shown
from azjax.players.serialization import PLAYER_FILE, Q_LEARNING
from azjax.settings import check_format, is_number
from azjax.training.analysis.plots import PLOT_FILE
from azjax.training.run.directory import CONFIG_FILE, is_at_work
from azjax.training.run.display import duration
from azjax.training.run.metrics import METRICS_FILE, SCORES, parse_rows

KINDS = (None, Q_LEARNING)
MAX_LENGTH = 1e12  # of a run (minutes or iterations)
MAX_CONFIG_BYTES = 2**20
MAX_PLOT_BYTES = 2**22
KEPT_CONFIGS = 10_000
MAX_MESSAGE = 300  # characters of an error message
_log = logging.getLogger(__name__)
TAIL = 256 * 1024  # bytes read from the end of the metrics file
KEPT_RUNS = 1000  # runs whose metrics are cached
MAX_QUANTITY = 1e15  # larger numbers are not shown
MAX_NAME = 80  # characters of a name in the metrics
MAX_RATES = 100  # of an evaluation
# Label and format of the metrics that are shown.
COUNTS = {
    "games": ("Games", "{:,.0f}"),
    "positions": ("Positions", "{:,.0f}"),
    "positions_per_second": ("Speed", "{:,.0f} positions/s"),
    "simulations": ("Simulations a move", "{:,.0f}"),
    "network_mistakes": ("Mistakes, network alone", "{:.1%}"),
    "search_mistakes": ("Mistakes, with search", "{:.1%}"),
    "network_win_probability_lost": (
        "Win probability lost, network alone",
        "{:.2%}",
    ),
    "search_win_probability_lost": ("Win probability lost, with search", "{:.2%}"),
}
LOSSES = {
    "policy_loss": ("Policy loss", "{:.3f}"),
    "value_loss": ("Value loss", "{:.3f}"),
    "loss": ("Loss", "{:.3f}"),
}
# Rates by name: the label before the name, and the key of the rate.
RATES = {
    SCORES: ("Score, network alone against", "score"),
    "matches": ("Not lost against", "not_lost"),
}
KEPT = ("seconds", "iteration", *COUNTS, *LOSSES, *RATES)


def stat_inside(directory: Path, name: str, most: int | None = None) -> os.stat_result:
    """Returns the status of a regular file of a directory; see `open_inside`."""
    with open_inside(directory, name, most) as file:
        return os.fstat(file.fileno())


def is_inside(directory: Path, name: str) -> bool:
    """Returns whether a regular file of a directory exists; see `open_inside`."""
    try:
        open_inside(directory, name).close()
    except OSError:
        return False
    return True


class RunInfo(NamedTuple):
    """A training run on disk.

    key: the name of its directory.
    directory: path.
    game: the trained game.
    kind: learning algorithm; None for AlphaZero.
    has_player: whether a player was saved.
    minutes: length of the run, None if it is not given in minutes.
    iterations: length of the run, None if it is not given in iterations.
    """

    key: str
    directory: Path
    game: Game
    kind: str | None
    has_player: bool
    minutes: float | None = None
    iterations: float | None = None

    @property
    def title(self) -> str:
        """The name shown on the page."""
        return f"{self.key}: {game_title(repr(self.game))}"


def find_runs(directory: Path) -> dict[str, RunInfo]:
    """Returns the runs in a directory by name.

    A run that cannot be read is omitted, and logged once for each version of its
    configuration.
    """
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return {}
    found = {}
    for path in paths:
        try:
            status = (path / CONFIG_FILE).lstat()
        except (OSError, ValueError):  # not a run
            continue
        run = _read_config(path, status.st_ino, status.st_mtime_ns, status.st_size)
        if run is not None:
            has_player = is_inside(path, f"player/{PLAYER_FILE}")
            found[run.key] = run._replace(has_player=has_player)
    return found


def plot_version(run: RunInfo) -> int | None:
    """Returns a number that changes with a run's plot, None without a plot."""
    try:
        status = stat_inside(run.directory, PLOT_FILE, MAX_PLOT_BYTES)
    except OSError:
        return None
    return status.st_mtime_ns // 1_000_000


def read_plot(run: RunInfo) -> bytes | None:
    """Returns the plot of a run as PNG, None without a plot."""
    try:
        return read_inside(run.directory, PLOT_FILE, MAX_PLOT_BYTES)
    except OSError:
        return None


@functools.lru_cache(KEPT_CONFIGS)
def _read_config(path: Path, *version: int) -> RunInfo | None:
    """Returns a run without `has_player`; logs and returns None if it cannot be read.

    Args:
        path: the run's directory.
        *version: numbers that change with its configuration.
    """
    del version
    try:
        if not path.name.isprintable():
            raise ValueError("its name has unprintable characters")
        content = read_inside(path, CONFIG_FILE, MAX_CONFIG_BYTES)
        config = check_format(json.loads(content))
        kind = config.get("kind")
        if kind not in KINDS:
            raise ValueError(f"unknown kind {shown(kind)}")
        if not isinstance(config["game"], str):
            raise ValueError(f"game must be a string: {shown(config['game'])}")
        game = games.make(config["game"])
        minutes, iterations = (
            length if is_number(length) and 0 < length < MAX_LENGTH else None
            for length in (config.get("minutes"), config.get("iterations"))
        )
        return RunInfo(path.name, path, game, kind, False, minutes, iterations)
    except Exception as error:  # any failure affects this run only
        _log.warning("the run %s is not shown: %s", shown(path.name), one_line(error))
        return None


def one_line(error: Exception) -> str:
    """Returns an error message as one short line, as it may quote a file."""
    text = " ".join((str(error) or type(error).__name__).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."


class LatestMetrics(NamedTuple):
    """The latest metrics of a run: what is shown of them, in bounded size.

    numbers: the latest values by name.
    rates: the latest rates by label, such as scores.
    is_evaluated: whether the last row is an evaluation, as at the end of a run.
    """

    numbers: dict[str, float]
    rates: dict[str, float]
    is_evaluated: bool


def describe_progress(run: RunInfo) -> dict[str, Any]:
    """Returns the progress of a run as JSON.

    Returns:
        `state`: `learning`, `finished` or `stopped` (interrupted or killed; it can be
        resumed); `share`: the completed part of the run in [0, 1], None if unknown.
    """
    latest = _latest_metrics(run)
    share, seconds = None, run.minutes and 60 * run.minutes
    for key, length in (("seconds", seconds), ("iteration", run.iterations)):
        if length:
            share = min(1.0, max(0.0, latest.numbers.get(key, 0.0)) / length)
    if is_at_work(run.directory):
        state = "learning"
    elif share == 1 and latest.is_evaluated:
        state = "finished"
    else:
        state = "stopped"
    return {"state": state, "share": share}


def latest_numbers(run: RunInfo) -> Iterator[tuple[str, str]]:
    """Yields the latest metrics to show, as labels and texts."""
    latest = _latest_metrics(run)
    values = latest.numbers
    if "seconds" in values:
        whole = f" of {duration(60 * run.minutes)}" if run.minutes else ""
        yield "Time", f"{duration(values['seconds'])}{whole}"
    if "iteration" in values:
        whole = f" of {run.iterations:,.0f}" if run.iterations else ""
        yield "Iteration", f"{values['iteration']:,}{whole}"
    for key, (label, form) in COUNTS.items():
        if key in values:
            yield label, form.format(values[key])
    for label, rate in latest.rates.items():
        yield label, f"{rate:.1%}"
    for key, (label, form) in LOSSES.items():
        if key in values:
            yield label, form.format(values[key])


def _latest_metrics(run: RunInfo) -> LatestMetrics:
    try:
        status = stat_inside(run.directory, METRICS_FILE)
        return _read_latest(run.directory, status.st_mtime_ns, status.st_size)
    except OSError:
        return LatestMetrics({}, {}, False)


@functools.lru_cache(KEPT_RUNS)
def _read_latest(directory: Path, modified: int, size: int) -> LatestMetrics:
    """Reads a metrics file; the modification time is part of the cache's key."""
    del modified
    values: dict[str, Any] = {}
    row: dict[str, Any] = {}
    with open_inside(directory, METRICS_FILE) as file:
        file.seek(max(0, size - TAIL))
        for row in parse_rows(io.BytesIO(file.read(TAIL))):
            values |= {name: row[name] for name in KEPT if name in row}
    numbers = {
        name: value
        for name, value in values.items()
        if is_number(value) and abs(value) < MAX_QUANTITY  # which excludes NaN
    }
    rates = {
        f"{label} {name[:MAX_NAME]}": result[key]
        for group, (label, key) in RATES.items()
        if isinstance(found := values.get(group), dict)
        for name, result in itertools.islice(found.items(), MAX_RATES)
        if isinstance(result, dict)
        and is_number(result.get(key))
        and abs(result[key]) < MAX_QUANTITY
    }
    return LatestMetrics(numbers, rates, row.get("kind") == "evaluation")
