"""The display of a training run and its metrics files."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from azjax.files import replace_file
from azjax.games import game_title
from azjax.training.analysis.plots import PLAYERS, plot_learning
from azjax.training.config import RunConfig
from azjax.training.run import clock
from azjax.training.run.directory import WorkingDirectory
from azjax.training.run.metrics import (
    METRICS_FILE,
    SCORES,
    EventFile,
    MetricsFile,
    Row,
    graded,
    iterate_metrics,
    json_line,
    losses,
    opponents,
    percent,
)
from azjax.training.run.sinks import SINKS_DIRECTORY, Sink, open_sinks

EVENTS = "TensorBoard events"
PLAIN_INTERVAL = 15.0  # between two lines without a terminal (seconds)


class Reporter:
    """Displays a run and writes its metrics; a context manager.

    A terminal shows a few lines that are redrawn; otherwise plain lines are printed,
    one for each evaluation and few others. A failing disk or service is reported once,
    and the run continues.

    files: directory of `metrics.jsonl`, `tensorboard/` and `plots/learning.png`.
    config: of the run.
    start: `iteration`, `seconds` and the evaluation `last` of the restored checkpoint;
        later metrics are dropped. None: all metrics are dropped.
    console: by default the standard output.
    first: first evaluation of the run; None until then.
    last: newest evaluation.
    """

    def __init__(
        self,
        files: WorkingDirectory,
        config: RunConfig,
        start: Mapping[str, Any] | None = None,
        console: Console | None = None,
    ):
        self.first: Row | None = None
        self.last: Row | None = None
        self._files = files
        self._config = config
        self._start = start or {"iteration": -1, "seconds": 0.0, "last": None}
        self._console = console or Console()
        self._iteration: Row | None = None
        self._purge_from: int | None = None  # positions; of older TensorBoard events
        self._note: Spinner | None = None
        self._notes_seen: set[str] = set()
        self._failures: set[str] = set()
        self._last_message: str | None = None
        self._printed_at = -PLAIN_INTERVAL
        self._clock = (self._start["seconds"], clock.now())
        # With FORCE_COLOR rich treats a pipe as a terminal; it cannot redraw lines.
        self._live = (
            Live(console=self._console, get_renderable=self._draw, refresh_per_second=4)
            if self._console.is_interactive and self._console.file.isatty()
            else None
        )

    def __enter__(self) -> Self:
        """Opens the files and starts the display."""
        path = self._files.path / METRICS_FILE
        replace_file(path, map(json_line, self._kept(iterate_metrics(path))))
        self._metrics = MetricsFile(path)
        self._sinks: dict[str, Sink] = {}
        with self._surviving(EVENTS):
            self._sinks[EVENTS] = EventFile(
                self._files.path / "tensorboard", self._purge_from
            )
        if self._live:
            self._live.start(refresh=True)
        else:
            doing, until = "train", "for"
            if self._iteration:
                doing, until = "continue training", "up to"
            minutes, where = self._config.minutes, self._files.directory
            length = f"{self._config.iterations or 0:,} iterations"
            if minutes is not None:
                length = f"{minutes:g} minutes, without compilation,"
            self._print(f"{doing} {self._config.game} {until} {length} in {where}")
        with self._surviving("metrics to services"):
            continues = self._start["iteration"] >= 0
            self._sinks |= open_sinks(
                self._files.path, self._config, self.message, continues=continues
            )
        return self

    def __exit__(self, *exception: object) -> None:
        """Stops the display and closes the files."""
        self._note = None
        self.leave()
        if self._last_message is not None:
            self._print(self._last_message)
        for what, sink in self._sinks.items():
            with self._surviving(what):
                sink.close()

    def message(self, text: str) -> None:
        """Prints a line above the display."""
        if self._live:
            self._console.print(Text(text), soft_wrap=True)
        else:
            self._print(text)

    def last_message(self, text: str) -> None:
        """Prints a line below the display when it stops."""
        self._last_message = text

    def leave(self) -> None:
        """Stops the display, with the cursor below it."""
        if self._live:
            self._live.stop()

    def compiling(self, what: str) -> None:
        """Shows until the next row that `what` is being compiled; the first time
        only."""
        if what in self._notes_seen:
            return
        self._notes_seen.add(what)
        if self._iteration:  # shown without change until the next row
            seconds, at = self._clock
            self._clock = (seconds + clock.now().since(at).seconds, clock.now())
        note = f"compiling {what}"
        if self._live:
            self._note = Spinner("dots", Text(note), style="cyan")
            self._live.refresh()
        else:
            self._print(f"{note} ...")

    def iteration(self, row: Row) -> None:
        """Writes and shows the metrics of an iteration."""
        self._clock = (row["seconds"], clock.now())
        self._record("iteration", row)
        self._iteration = row
        since = time.monotonic() - self._printed_at
        if not self._live and since >= PLAIN_INTERVAL:
            texts = _plain([*_learning_texts(row), *_self_play_texts(row)])
            self._print(f"[{duration(row['seconds'])}] {texts}")
            self._printed_at = time.monotonic()

    def evaluation(self, row: Row) -> None:
        """Writes and shows the metrics of an evaluation, and redraws the plot."""
        self._record("evaluation", row)
        self.first = self.first or row
        self.last = row
        if not self._metrics.waiting:  # the plot reads the file
            with self._surviving("the plot"):
                plot_learning(self._files.path, self._config.game)
        if not self._live:
            name, texts = _strength(row, None)
            self._print(f"[{duration(row['seconds'])}] {name}: {_plain(texts)}")

    def publish(self) -> None:
        """Copies written files to a remote run directory."""
        with self._surviving("to the run directory"):
            self._files.publish(METRICS_FILE, "plots", "tensorboard", SINKS_DIRECTORY)

    def _kept(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields the rows up to the checkpoint, and takes those that are displayed;
        later ones will be computed again."""
        last = self._start["last"]
        evaluated = -1 if last is None else last["iteration"]
        for row in rows:
            self._purge_from = self._purge_from or 0
            is_evaluation = row["kind"] == "evaluation"
            if row["iteration"] > (
                evaluated if is_evaluation else self._start["iteration"]
            ):
                continue
            self._purge_from = max(self._purge_from, row["positions"] + 1)
            if is_evaluation:
                self.first, self.last = self.first or row, row
            else:
                self._iteration = row
            yield row

    def _record(self, kind: str, row: Row) -> None:
        self._note = None
        row = {"kind": kind, **row}
        with self._surviving("metrics"):
            self._metrics.append(row)
        for what, sink in list(self._sinks.items()):
            try:
                sink.write(row)
            except OSError:
                del self._sinks[what]
                with self._surviving(what):
                    sink.close()
                    raise

    @contextlib.contextmanager
    def _surviving(self, what: str) -> Iterator[None]:
        """Reports a failing disk or service, once, and continues."""
        try:
            yield
        except OSError as error:
            if what not in self._failures:
                self._failures.add(what)
                self.message(f"writing {what} failed, the run continues: {error}")

    def _print(self, text: str) -> None:
        # A closed pipe or a full disk is ignored; the metrics contain the same.
        with contextlib.suppress(OSError):
            print(text, file=self._console.file, flush=True)

    def _draw(self) -> RenderableType:
        seconds, at = self._clock
        # The clock starts with the first iteration; this thread has another one.
        if self._iteration and not self._note:
            seconds += time.monotonic() - sum(at)
        left: float | None
        if self._config.minutes is not None:
            total = 60 * self._config.minutes
            share, left = min(seconds / total, 1.0), max(total - seconds, 0.0)
        else:
            assert self._config.iterations is not None
            done = self._iteration["iteration"] if self._iteration else 0
            share, left = min(done / self._config.iterations, 1.0), None
            if since_start := done - max(self._start["iteration"], 0):
                spent = self._clock[0] - self._start["seconds"]
                ahead = (self._config.iterations - done) * spent / since_start
                left = max(self._clock[0] + ahead - seconds, 0.0)
        title = Text(game_title(self._config.game), "bold")
        spent = f"{_clock(seconds)}, {_clock(left)} left" if left else _clock(seconds)
        head = Table.grid(padding=(0, 2), expand=True)
        head.add_column(no_wrap=True, min_width=len(title))
        head.add_column(ratio=1, min_width=4)
        head.add_column(no_wrap=True, min_width=4, justify="right")
        head.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0, completed=share, complete_style="cyan")
        head.add_row(title, bar, f"{share:.0%}", Text(spent, "dim"))
        body = Table.grid(padding=(0, 2), expand=True)
        body.add_column(no_wrap=True, style="cyan", min_width=9)
        body.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        if self._iteration:
            body.add_row("self-play", _join(_self_play_texts(self._iteration)))
            body.add_row("learning", _join(_learning_texts(self._iteration)))
        if self.last:
            name, texts = _strength(self.last, self.first)
            body.add_row(name, _join(texts))
        return Group(head, body, *([self._note] if self._note else []))


class SilentReporter:
    """The reporter of processes other than the first: shows and writes nothing."""

    def __enter__(self) -> Self:
        """Does nothing."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Does nothing."""

    def message(self, _: object) -> None:
        """Does nothing; the same holds for the other methods."""

    last_message = compiling = iteration = evaluation = message

    def leave(self) -> None:
        """Does nothing."""

    publish = leave


def duration(seconds: float) -> str:
    """Formats a time: `45 s`, `7 min 24 s`, `2 h 05 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def _clock(seconds: float) -> str:
    """Formats a time briefly: `7:24`, `2:05:00`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{minutes}:{seconds:02}"
    return f"{hours}:{clock:0>5}" if hours else clock


def _self_play_texts(row: Row) -> list[Text]:
    texts = [
        f"{row['games']:,} games",
        f"{row['positions']:,} positions",
        f"{row['positions_per_second']:,.0f} per second",
    ]
    if "simulations" in row:
        texts.append(f"{row['simulations']} simulations")
    if row.get("epsilon") is not None:
        texts.append(f"{row['epsilon']:.0%} random moves")
    return [Text(text) for text in texts]


def _learning_texts(row: Row) -> list[Text]:
    texts = [
        f"{name} loss {f'{loss:.3f}' if loss >= 0.01 else f'{loss:.2g}'}"
        for name, loss in losses(row).items()
    ]
    texts = [f"iteration {row['iteration']:,}", *(texts or ["collecting positions"])]
    if row.get("learning_rate") is not None:
        texts.append(f"rate {row['learning_rate']:.2g}")
    return [Text(text) for text in texts]


def _strength(row: Row, first: Row | None) -> tuple[str, list[Text]]:
    """Returns the measure of strength, and the newest numbers besides the first
    ones."""
    kind, rates = _rates(row)
    before = _rates(first)[1] if first else {}
    texts = []
    for name, rate in rates.items():
        texts.append(Text.assemble(f"{name} ", (percent(kind, rate), "bold")))
        if first and first["iteration"] != row["iteration"] and name in before:
            texts[-1].append(f" (was {percent(kind, before[name])})", "dim")
    return "score" if kind == SCORES else kind.replace("_", " "), texts


def _rates(row: Row) -> tuple[str, dict[str, float]]:
    """Returns the kind of the rates that show strength, and the rates by name."""
    kind, names = graded(row)
    if names:
        labels = {name: PLAYERS.get(name, (name,))[0] for name in names}
        return kind, {labels[name]: row[f"{name}_{kind}"] for name in names}
    scores = {name: row[SCORES][name]["score"] for name in opponents(row)}
    alone = PLAYERS["network"][0]
    return SCORES, {f"{alone} against {name}": scores[name] for name in scores}


def _join(texts: Sequence[Text]) -> Text:
    return Text.assemble((" · ", "dim")).join(texts)


def _plain(texts: Sequence[Text]) -> str:
    return ", ".join(text.plain for text in texts)
