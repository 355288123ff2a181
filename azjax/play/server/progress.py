"""Progress of a training run, as shown on the page."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

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

# Label and format of the metrics that are shown.
COUNTS = {
    "games": ("Games", "{:,.0f}"),
    "positions": ("Positions", "{:,.0f}"),
    "positions_per_second": ("Speed", "{:,.0f} positions/s"),
    "simulations": ("Simulations a move", "{:,.0f}"),
}
MISTAKES = {
    "network_mistakes": ("Mistakes, network alone", "{:.1%}"),
    "search_mistakes": ("Mistakes, with search", "{:.1%}"),
}
LOSSES = {
    "policy_loss": ("Policy loss", "{:.3f}"),
    "value_loss": ("Value loss", "{:.3f}"),
    "loss": ("Loss", "{:.3f}"),
}


class LatestMetrics(NamedTuple):
    """The latest metrics of a run.

    values: the latest value by name.
    is_evaluated: whether the last row is an evaluation, as at the end of a run.
    """

    values: dict[str, Any]
    is_evaluated: bool


def describe_progress(run: RunInfo) -> dict[str, Any]:
    """Returns the progress of a run as JSON.

    Returns:
        `state`: `learning`, `finished` or `stopped` (interrupted or killed; it can be
        resumed); `share`: the completed part of the run in [0, 1], None if unknown.
    """
    latest = _latest_metrics(run)
    share = _share(run, latest.values)
    if is_at_work(run.directory):
        state = "learning"
    elif share == 1 and latest.is_evaluated:
        state = "finished"
    else:
        state = "stopped"
    return {"state": state, "share": share}


def latest_numbers(run: RunInfo) -> list[tuple[str, str]]:
    """Returns the latest metrics to show, as labels and texts."""
    return list(_numbers(run, _latest_metrics(run).values))


def _numbers(run: RunInfo, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if _is_number(values.get("seconds")):
        whole = f" of {duration(60 * run.minutes)}" if run.minutes else ""
        yield "Time", f"{duration(values['seconds'])}{whole}"
    if _is_number(values.get("iteration")):
        whole = f" of {run.iterations:,.0f}" if run.iterations else ""
        yield "Iteration", f"{values['iteration']:,}{whole}"
    for key, (label, form) in (COUNTS | MISTAKES).items():
        if _is_number(values.get(key)):
            yield label, form.format(values[key])
    scores = values.get(SCORES)
    for name, score in scores.items() if isinstance(scores, dict) else ():
        if isinstance(score, dict) and _is_number(score.get("score")):
            yield f"Score against {name[:MAX_NAME]}", f"{score['score']:.1%}"
    matches = values.get("matches")
    for name, match in matches.items() if isinstance(matches, dict) else ():
        if isinstance(match, dict) and _is_number(match.get("not_lost")):
            yield f"Not lost against {name[:MAX_NAME]}", f"{match['not_lost']:.1%}"
    for key, (label, form) in LOSSES.items():
        if _is_number(values.get(key)):
            yield label, form.format(values[key])


def _share(run: RunInfo, values: dict[str, Any]) -> float | None:
    """Returns the completed part of a run, by iterations or else by time."""
    seconds = run.minutes and 60 * run.minutes
    for key, length in (("iteration", run.iterations), ("seconds", seconds)):
        if length:
            done = values.get(key)
            return min(1.0, done / length) if _is_number(done) else 0.0
    return None


def _latest_metrics(run: RunInfo) -> LatestMetrics:
    try:
        status = stat_inside(run.directory, METRICS_FILE)
        return _read_latest(run.directory, status.st_mtime_ns, status.st_size)
    except OSError:
        return LatestMetrics({}, False)


@functools.lru_cache(KEPT_RUNS)
def _read_latest(directory: Path, modified: int, size: int) -> LatestMetrics:
    """Reads a metrics file; the modification time is part of the cache's key."""
    del modified
    with open_inside(directory, METRICS_FILE) as file:
        file.seek(max(0, size - TAIL))
        rows = parse_rows(file.read(TAIL))
    values = {key: value for row in rows for key, value in row.items()}
    return LatestMetrics(values, bool(rows) and rows[-1].get("kind") == "evaluation")


def _is_number(value: object) -> TypeGuard[float]:
    return is_number(value) and abs(value) < MAX_QUANTITY  # which excludes NaN
