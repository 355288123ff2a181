"""Shared by the benchmarks: timing in turns, tables and JSON."""

import itertools
import json
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import rich
import rich.table

K = TypeVar("K", bound=Hashable)  # names of runs


def time_in_turns(
    runs: dict[K, Callable[[], object]], repeats: int
) -> dict[K, list[float]]:
    """Returns the seconds of each run.

    The programs alternate after a warm-up, so that other load slows all of them.
    """
    seconds: dict[K, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def make_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    title: str = "",
    *,
    section: str = "",
) -> rich.table.Table:
    """Returns measurements as a table.

    Args:
        rows: what was measured, by name.
        columns: format of the cells by heading, such as `{seconds:.3f}`.
        title: above the table.
        section: name of a measurement; a line is drawn where it changes.
    """
    first, *others = columns
    table = rich.table.Table(
        rich.table.Column(first, no_wrap=True),
        *(rich.table.Column(name, justify="right") for name in others),
        title=title or None,
    )
    for row, following in itertools.zip_longest(rows, rows[1:], fillvalue={}):
        table.add_row(
            *(cell.format(**row) for cell in columns.values()),
            end_section=bool(section) and row.get(section) != following.get(section),
        )
    return table


def show(results: object, *renderables: object, as_json: bool) -> None:
    """Prints results as JSON, or the tables or texts about them."""
    if as_json:
        print(json.dumps(results))
    else:
        rich.print(*renderables)
