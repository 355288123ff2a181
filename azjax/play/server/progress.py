"""How far a training run is, told for people."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from azjax.checks import is_number
from azjax.play.server.run_files import open_inside, stat_inside
from azjax.play.server.runs import Run
from azjax.training.lock import is_at_work
from azjax.training.metrics import METRICS_FILE, SCORES, parse_rows
from azjax.training.reporting import duration

TAIL = 256 * 1024  # bytes of the metrics that are read
KEPT_RUNS = 1000  # whose newest metrics are kept
MAX_QUANTITY = 1e15  # of what is shown; larger numbers are no measurements
MAX_NAME = 80  # letters of a name in the metrics

# What is shown of the newest row that has it, how it is called and written.
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


class Newest(NamedTuple):
    """What the newest rows of a run's metrics say.

    values: the newest of each name.
    is_evaluated: whether the last row is an evaluation, as it is at a run's end.
    """

    values: dict[str, Any]
    is_evaluated: bool


def describe_progress(run: Run) -> dict[str, Any]:
    """Returns how far a run is.

    Returns:
        `state`, one of `learning`, `finished` and `stopped` (it can go on, whether it
        was interrupted or killed); `share`, the part of the run that is over, in
        [0, 1], None if that is unknown.
    """
    newest = _newest_of(run)
    share = _share(run, newest.values)
    if is_at_work(run.directory):
        state = "learning"
    elif share == 1 and newest.is_evaluated:
        state = "finished"
    else:
        state = "stopped"
    return {"state": state, "share": share}


def newest_numbers(run: Run) -> list[tuple[str, str]]:
    """Returns the newest numbers worth showing, as names and texts."""
    return list(_numbers(run, _newest_of(run).values))


def _numbers(run: Run, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
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


def _share(run: Run, values: dict[str, Any]) -> float | None:
    """Returns the part of the run that is over, as the run itself counts it."""
    seconds = run.minutes and 60 * run.minutes
    for key, length in (("iteration", run.iterations), ("seconds", seconds)):
        if length:
            done = values.get(key)
            return min(1.0, done / length) if _is_number(done) else 0.0
    return None


def _newest_of(run: Run) -> Newest:
    try:
        about = stat_inside(run.directory, METRICS_FILE)
        return _read_newest(run.directory, about.st_mtime_ns, about.st_size)
    except OSError:
        return Newest({}, False)


@functools.lru_cache(KEPT_RUNS)
def _read_newest(directory: Path, changed: int, size: int) -> Newest:
    """Returns what a run's metrics file says that changed then (nanoseconds)."""
    del changed
    with open_inside(directory, METRICS_FILE) as file:
        file.seek(max(0, size - TAIL))
        rows = parse_rows(file.read(TAIL))
    values = {key: value for row in rows for key, value in row.items()}
    return Newest(values, bool(rows) and rows[-1].get("kind") == "evaluation")


def _is_number(value: object) -> TypeGuard[float]:
    return is_number(value) and abs(value) < MAX_QUANTITY  # which excludes NaN
