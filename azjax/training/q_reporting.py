"""What a person sees of a run of Q-learning, and what it leaves to be looked at."""

import contextlib
import shlex
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from azjax import games
from azjax.program import program_for
from azjax.training.metrics import (
    METRICS_FILE,
    MetricsFile,
    Row,
    json_line,
    read_metrics,
    replace_file,
)
from azjax.training.plots import PLOT_FILE, game_title
from azjax.training.q_config import QConfig
from azjax.training.q_plots import plot_q_learning
from azjax.training.reporting import duration


class QReporter:
    """Shows a run while it lasts, and keeps its metrics; a context manager.

    A line is printed for each evaluation, and on a terminal a bar moves below them.

    config: of the run.
    iteration: of the checkpoint from which the run goes on, -1 for a new run; what the
        metrics hold beyond it is dropped.
    console: where to show it, by default the standard output.
    """

    def __init__(self, config: QConfig, iteration: int, console: Console | None = None):
        self._config = config
        self._iteration = iteration
        self._console = console or Console()
        self._last_message: str | None = None
        is_terminal = self._console.is_interactive and self._console.file.isatty()
        self._progress = Progress(
            TextColumn("[cyan]{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("[dim]{task.fields[state]}"),
            console=self._console,
            disable=not is_terminal,
        )
        self._task = self._progress.add_task(
            f"learn {config.game}", total=1.0, state="compiling"
        )

    def __enter__(self) -> Self:
        """Opens the files and starts the display."""
        path = self._config.directory / METRICS_FILE
        rows = [
            row for row in read_metrics(path) if row["iteration"] <= self._iteration
        ]
        replace_file(path, b"".join(map(json_line, rows)))
        self._metrics = MetricsFile(path)
        self._progress.start()
        self.message(f"learn {self._config.game} in {self._config.directory}")
        return self

    def __exit__(self, *exception: object) -> None:
        """Leaves the bar where it is."""
        self.leave()
        if self._last_message is not None:
            self.message(self._last_message)

    def message(self, text: str) -> None:
        """Prints a line, above the bar."""
        # Whoever read the lines may be gone; the metrics have it all.
        with contextlib.suppress(OSError):
            self._console.print(Text(text), soft_wrap=True)

    def last_message(self, text: str) -> None:
        """Prints a line below the bar, when that is closed."""
        self._last_message = text

    def leave(self) -> None:
        """Leaves the bar where it is, and the cursor below it."""
        self._progress.stop()

    def iteration(self, share: float, row: Row) -> None:
        """Shows how far the run is."""
        state = f"{row['positions']:,} moves, {row['updates']:,} updates"
        self._progress.update(self._task, completed=share, state=state)

    def evaluation(self, row: Row) -> None:
        """Records and shows an evaluation, and redraws the plot."""
        self._metrics.append({"kind": "evaluation", **row})
        plot_q_learning(self._config.directory, self._config.game)
        loss = "" if row["loss"] is None else f", loss {row['loss']:.4f}"
        against = ", ".join(
            f"{match['not_lost']:.1%} against {opponent}"
            for opponent, match in row["matches"].items()
        )
        self.message(
            f"[{duration(row['seconds'])}] not lost: {against}{loss}, "
            f"random moves {row['epsilon']:.0%}"
        )


def print_q_run(
    console: Console, game: str, run_dir: Path, last: dict[str, Any]
) -> None:
    """Prints what a finished run came to, where it is, and how to play against it."""
    title = f"{game_title(game)}: learnt by Q-learning"
    table = Table(
        "opponent", "side", "won", "drawn", "lost", "not lost", title=title, box=None
    )
    for opponent, match in last["matches"].items():
        for side in ("first", "second"):
            counts = match[f"as_{side}"]
            rate = 1 - counts["losses"] / sum(counts.values())
            table.add_row(
                opponent, side, *map(str, counts.values()), f"{100 * rate:.1f}%"
            )
    console.print(table)
    console.print(
        f"{last['positions']:,} moves and {last['updates']:,} updates in "
        f"{duration(last['seconds'])}; plot: {run_dir / PLOT_FILE}",
        soft_wrap=True,
        highlight=False,
    )
    player = shlex.quote(f"q_learning:{run_dir.as_posix()}")
    program = program_for(games.make(game))
    line = Text.assemble(
        ("Play against it:  ", "bold"),
        (f"{program} play {game} --opponent {player}", "green"),
    )
    console.print(line, soft_wrap=True)
