"""Comparisons of training runs for the page, read from untrusted files."""

import functools
import io
import itertools
import logging
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from azjax.play.server.memory import Cache, ValueEntry
from azjax.play.server.messages import shown
from azjax.play.server.runs import (
    MAX_CONFIG_BYTES,
    MAX_NAME,
    RunInfo,
    one_line,
    stat_inside,
)
from azjax.training.analysis.comparison import (
    SavedRun,
    draw_comparison,
    measures,
    read_run,
    sections,
)
from azjax.training.run.directory import CONFIG_FILE
from azjax.training.run.metrics import METRICS_FILE

MAX_RUNS = 8  # of a comparison
MAX_METRICS_BYTES = 2**26
MAX_ROWS = 200  # of a section
MAX_PANELS = 12  # rows of the picture; with more there is none
RATE_BYTES = 1000  # of a rate of an evaluation in memory, with its share of the rest
ENTRY_BYTES = 10_000  # of an empty run in memory

_log = logging.getLogger(__name__)

Version = tuple[int, ...]  # numbers that change with the files of a run


class Comparisons:
    """Comparisons of runs; thread-safe. Files are read once for each version.

    Args:
        cache: keeps the runs that were read, and the pictures.
    """

    def __init__(self, cache: Cache):
        self._cache = cache
        self._drawing = threading.Lock()  # one picture at a time, about a second each

    def describe(self, runs: Sequence[RunInfo]) -> dict[str, Any]:
        """Returns the tables of `azjax compare` as JSON; runs that cannot be read are
        left out."""
        versions = tuple(_version(run.directory) for run in runs)
        found = self._read(runs, versions)
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
            "plot": abs(hash(versions)) % 2**32 if _has_plot(found) else None,
        }

    def draw(self, runs: Sequence[RunInfo]) -> bytes | None:
        """Returns the picture of `azjax compare --plot` as PNG, None without one."""
        versions = tuple(_version(run.directory) for run in runs)

        def draw() -> tuple[bytes | None, int]:
            found = self._read(runs, versions)
            if not _has_plot(found):
                return None, 0
            buffer = io.BytesIO()
            draw_comparison(found).savefig(buffer, format="png")
            return buffer.getvalue(), buffer.tell()

        with self._drawing:
            return self._load(tuple(run.directory for run in runs), versions, draw)

    def _read(
        self, runs: Sequence[RunInfo], versions: Sequence[Version]
    ) -> list[SavedRun]:
        found = [
            self._load(run.directory, version, functools.partial(_read_run, run))
            for run, version in zip(runs, versions, strict=True)
            if version
        ]
        return [run for run in found if run is not None]

    def _load(
        self, key: Hashable, version: object, read: Callable[[], tuple[Any, int]]
    ) -> Any:
        def make(_: object) -> ValueEntry:
            value, num_bytes = read()
            return ValueEntry(value, ENTRY_BYTES + num_bytes)

        return self._cache.load(key, make, version).value


def _has_plot(runs: Sequence[SavedRun]) -> bool:
    return 0 < len(measures(runs)) <= MAX_PANELS


def _read_run(run: RunInfo) -> tuple[SavedRun | None, int]:
    """Returns a run, and its estimated size in memory; logs and returns None if it
    cannot be read."""
    try:
        found = read_run(run.key, run.directory)
        config_bytes = stat_inside(run.directory, CONFIG_FILE).st_size
    except Exception as error:  # any failure affects this run only
        _log.warning("the run %s is not compared: %s", shown(run.key), one_line(error))
        return None, 0
    num_rates = sum(len(evaluation.rates) for evaluation in found.evaluations)
    return found, RATE_BYTES * num_rates + 10 * config_bytes


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
