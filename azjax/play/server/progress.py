"""Progress of a training run, as shown on the page."""

import functools
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from azjax.checks import is_number
from azjax.play.server.run_files import open_inside, stat_inside
from azjax.play.server.runs import RunInfo
from azjax.training.lock import is_at_work
from azjax.training.metrics import METRICS_FILE, SCORES, parse_rows
from azjax.training.reporting import duration

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
}
LOSSES = {
    "policy_loss": ("Policy loss", "{:.3f}"),
    "value_loss": ("Value loss", "{:.3f}"),
    "loss": ("Loss", "{:.3f}"),
}
# Rates by name: the label before the name, and the key of the rate.
RATES = {
    SCORES: ("Score against", "score"),
    "matches": ("Not lost against", "not_lost"),
}
KEPT = ("seconds", "iteration", *COUNTS, *LOSSES, *RATES)


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
    share = _share(run, latest.numbers)
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


def _share(run: RunInfo, values: dict[str, float]) -> float | None:
    """Returns the completed part of a run, by iterations or else by time."""
    seconds = run.minutes and 60 * run.minutes
    for key, length in (("iteration", run.iterations), ("seconds", seconds)):
        if length:
            return min(1.0, max(0.0, values.get(key, 0.0)) / length)
    return None


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
