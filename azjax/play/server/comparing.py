"""Comparisons of training runs for the page, read from untrusted files."""

import functools
import io
import itertools
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from azjax.play.server.messages import shown
from azjax.play.server.progress import MAX_NAME
from azjax.play.server.run_files import stat_inside
from azjax.play.server.runs import MAX_CONFIG_BYTES, RunInfo, one_line
from azjax.training.comparison import SavedRun, measures, read_run, sections
from azjax.training.comparison_plot import draw_comparison
from azjax.training.metrics import METRICS_FILE
from azjax.training.run_directory import CONFIG_FILE

MAX_RUNS = 8  # of a comparison
KEPT_RUNS = 100  # whose metrics are cached
KEPT_PLOTS = 20
MAX_METRICS_BYTES = 2**26
MAX_ROWS = 200  # of a section
MAX_PANELS = 12  # rows of the picture; with more there is none

_log = logging.getLogger(__name__)
_drawing = threading.Lock()  # one picture at a time, which takes about a second

Version = tuple[int, ...]  # numbers that change with the files of a run


def describe_comparison(runs: Sequence[RunInfo]) -> dict[str, Any]:
    """Returns the tables of `azjax compare` as JSON; runs that cannot be read are left
    out."""
    found = _read(runs)
    return {
        "names": [run.name for run in found],
        "sections": [
            {
                "heading": heading,
                "rows": [
                    [name[:MAX_NAME], *(text[:MAX_NAME] for text in texts)]
                    for name, texts in itertools.islice(rows.items(), MAX_ROWS)
                ],
            }
            for heading, rows in (sections(found) if found else ())
        ],
        "plot": abs(hash(_versions(runs))) % 2**32 if _has_plot(found) else None,
    }


def draw_runs(runs: Sequence[RunInfo]) -> bytes | None:
    """Returns the picture of `azjax compare --plot` as PNG, None without one."""
    with _drawing:
        return _drawn(tuple(runs), _versions(runs))


@functools.lru_cache(KEPT_PLOTS)
def _drawn(runs: tuple[RunInfo, ...], versions: tuple[Version, ...]) -> bytes | None:
    del versions  # part of the cache's key
    found = _read(runs)
    if not _has_plot(found):
        return None
    buffer = io.BytesIO()
    draw_comparison(found).savefig(buffer, format="png")
    return buffer.getvalue()


def _has_plot(runs: Sequence[SavedRun]) -> bool:
    return 0 < len(measures(runs)) <= MAX_PANELS


def _read(runs: Sequence[RunInfo]) -> list[SavedRun]:
    found = map(_read_version, runs, _versions(runs))
    return [run for run in found if run is not None]


@functools.lru_cache(KEPT_RUNS)
def _read_version(run: RunInfo, version: Version) -> SavedRun | None:
    """Returns a run; logs and returns None if it cannot be read."""
    if not version:
        return None
    try:
        return read_run(run.key, run.directory)
    except Exception as error:  # any failure affects this run only
        _log.warning("the run %s is not compared: %s", shown(run.key), one_line(error))
        return None


def _versions(runs: Sequence[RunInfo]) -> tuple[Version, ...]:
    return tuple(_version(run.directory) for run in runs)


def _version(directory: Path) -> Version:
    """Returns numbers that change with the files of a run; none if one of them is a
    link, or no regular file, or too large."""
    numbers = []
    files = [(CONFIG_FILE, MAX_CONFIG_BYTES)]
    if os.path.lexists(directory / METRICS_FILE):  # else it has just begun
        files.append((METRICS_FILE, MAX_METRICS_BYTES))
    for name, most in files:
        try:
            status = stat_inside(directory, name, most)
        except OSError:
            return ()
        numbers += [status.st_mtime_ns, status.st_size]
    return tuple(numbers)
