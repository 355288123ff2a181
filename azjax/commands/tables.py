"""Tables and progress of commands on a terminal or in a file."""

import datetime
import sys
import time
from typing import Annotated, Self

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from azjax.text import printable

LINE_SECONDS = 30.0  # between lines

JsonOption = Annotated[bool, tyro.conf.arg(name="json", help="print one JSON object.")]


def tables_console(as_json: bool) -> Console:
    """Returns the console of tables; with --json, standard output has nothing else."""
    return Console(stderr=as_json, width=None if sys.stdout.isatty() else 120)


def print_line(console: Console, text: str) -> None:
    """Prints a line without interpreting markup or control characters."""
    console.print(Text(printable(text)), soft_wrap=True)


class WorkProgress:
    """A context that shows the parts of some work, one after the other, with the time
    that is left for each.

    Args:
        console: a terminal gets bars, which disappear at the end; a file gets a line at
            most every `LINE_SECONDS`.
    """

    def __init__(self, console: Console):
        unit = TextColumn("{task.description}", markup=False)
        columns = (BarColumn(), MofNCompleteColumn(), unit, TimeRemainingColumn())
        self._bars = Progress(*columns, console=console, transient=True)
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def show(self, unit: str, done: int, total: int) -> None:
        """Shows how much of a part is done; the unit names the part."""
        console, tasks = self._bars.console, self._bars.tasks
        if not tasks or tasks[-1].description != unit:
            self._bars.add_task(unit, total=total)
        task = self._bars.tasks[-1]
        self._bars.update(task.id, completed=done)
        now = time.monotonic()
        if console.is_terminal or not done or now - self._last < LINE_SECONDS:
            return
        self._last, left = now, task.time_remaining
        text = f"{done} of {total} {unit}"
        if left:
            text += f", {datetime.timedelta(seconds=round(left))} left"
        print_line(console, text)
