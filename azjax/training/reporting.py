"""What a person sees of a training run, and what it leaves to be looked at."""

import contextlib
import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from tensorboardX.proto import event_pb2, summary_pb2
from tensorboardX.record_writer import RecordWriter

from azjax.games import Game
from azjax.players import Choice
from azjax.training.config import TrainConfig
from azjax.training.plots import (
    METRICS_FILE,
    PLOT_FILE,
    Row,
    game_title,
    plot_learning,
    read_metrics,
    replace_file,
)

PLAIN_INTERVAL = 15.0  # between two lines where there is no terminal (seconds)
FLUSH_INTERVAL = 10.0  # between two moments when TensorBoard can see news (seconds)
SUMMARY_MOVES = 10  # of the opening position

TAGS = {
    "policy_loss": "loss/policy",
    "value_loss": "loss/value",
    "gradient_norm": "learner/gradient_norm",
    "learning_rate": "learner/learning_rate",
    "games": "self_play/games",
    "simulations": "self_play/simulations",
    "policy_entropy": "self_play/policy_entropy",
    "policy_gain": "self_play/policy_gain",
    "value_gain": "self_play/value_gain",
    "first_player_score": "self_play/first_player_score",
    "positions_per_second": "speed/positions_per_second",
    "self_play_seconds": "speed/self_play_seconds",
    "update_seconds": "speed/update_seconds",
    "network_mistakes": "mistakes/network",
    "search_mistakes": "mistakes/search",
    "random_score": "score/random",
}

# Protobuf makes these classes at import, out of sight of a type checker.
_Event, _SessionLog = vars(event_pb2)["Event"], vars(event_pb2)["SessionLog"]
_Summary = vars(summary_pb2)["Summary"]


class Reporter:
    """Shows a run while it lasts, and keeps its metrics; a context manager.

    On a terminal a few lines are redrawn in place; elsewhere plain lines are printed,
    one for each evaluation and few others. A disk that fails is reported once, and the
    run goes on.

    run_dir: gets `metrics.jsonl`, `tensorboard/` and `plots/learning.png`.
    config: of the run.
    start: `iteration` and `seconds` of the checkpoint from which the run goes on; what
        the metrics hold beyond it is dropped. None begins them anew.
    console: where to show it, by default the standard output.
    first: the first evaluation of the run, once there is one.
    last: the newest evaluation.
    """

    def __init__(
        self,
        run_dir: Path,
        config: TrainConfig,
        start: Mapping[str, Any] | None = None,
        console: Console | None = None,
    ):
        self.first: Row | None = None
        self.last: Row | None = None
        self._run_dir = run_dir
        self._config = config
        self._start = start or {"iteration": -1, "seconds": 0.0}
        self._console = console or Console()
        self._iteration: Row | None = None
        self._note: Spinner | None = None
        self._notes_seen: set[str] = set()
        self._failures: set[str] = set()
        self._printed_at = -PLAIN_INTERVAL
        self._clock = (self._start["seconds"], time.monotonic())
        # FORCE_COLOR makes rich take a pipe for a terminal; lines cannot be redrawn
        # there all the same.
        self._live = (
            Live(console=self._console, get_renderable=self._draw, refresh_per_second=4)
            if self._console.is_interactive and self._console.file.isatty()
            else None
        )

    def __enter__(self) -> Self:
        """Opens the files and starts the display."""
        path = self._run_dir / METRICS_FILE
        rows = read_metrics(path)
        kept = [row for row in rows if row["iteration"] <= self._start["iteration"]]
        replace_file(path, b"".join(map(_json_line, kept)))
        self._metrics = _MetricsFile(path)
        newest = max((row["positions"] for row in kept), default=-1)
        self._events: _EventFile | None = None
        with self._surviving("TensorBoard events"):
            self._events = _EventFile(
                self._run_dir / "tensorboard", newest + 1 if rows else None
            )
        evaluations = [row for row in kept if row["kind"] == "evaluation"]
        iterations = [row for row in kept if row["kind"] == "iteration"]
        self.first = evaluations[0] if evaluations else None
        self.last = evaluations[-1] if evaluations else None
        self._iteration = iterations[-1] if iterations else None
        if self._live:
            self._live.start(refresh=True)
        else:
            doing = "go on learning" if iterations else "learn"
            length = _length(self._config)
            self._print(f"{doing} {self._config.game} for {length} in {self._run_dir}")
        return self

    def __exit__(self, *exception: object) -> None:
        """Leaves the last display where it is and closes the files."""
        self._note = None
        if self._live:
            self._live.stop()
        with self._surviving("TensorBoard events"):
            if self._events:
                self._events.close()

    def message(self, text: str) -> None:
        """Prints a line, above the display."""
        if self._live:
            self._console.print(Text(text), soft_wrap=True)
        else:
            self._print(text)

    def compiling(self, what: str) -> None:
        """Notes until the next row that `what` is compiled; the first time only."""
        if what in self._notes_seen:
            return
        self._notes_seen.add(what)
        note = f"compiling {what}"
        if self._live:
            self._note = Spinner("dots", Text(note), style="cyan")
            self._live.refresh()
        else:
            self._print(f"{note} ...")

    def iteration(self, row: Row) -> None:
        """Records and shows a chunk of self-play with its updates."""
        self._record("iteration", row)
        self._iteration = row
        since = time.monotonic() - self._printed_at
        if not self._live and since >= PLAIN_INTERVAL:
            parts = _plain([*_learning_parts(row), *_self_play_parts(row)])
            self._print(f"[{duration(row['seconds'])}] {parts}")
            self._printed_at = time.monotonic()

    def evaluation(self, row: Row) -> None:
        """Records and shows an evaluation, and redraws the plot."""
        self._record("evaluation", row)
        self.first = self.first or row
        self.last = row
        with self._surviving("the plot"):
            plot_learning(self._run_dir, self._config.game)
        if not self._live:
            name, parts = _strength(row, None)
            self._print(f"[{duration(row['seconds'])}] {name}: {_plain(parts)}")

    def _record(self, kind: str, row: Row) -> None:
        self._note = None
        self._clock = (row["seconds"], time.monotonic())
        with self._surviving("metrics"):
            self._metrics.append({"kind": kind, **row})
        if self._events:
            try:
                self._events.write(row)
            except OSError:
                events, self._events = self._events, None
                with self._surviving("TensorBoard events"):
                    events.close()
                    raise

    @contextlib.contextmanager
    def _surviving(self, what: str) -> Iterator[None]:
        """Reports, once, a disk that fails."""
        try:
            yield
        except OSError as error:
            if what not in self._failures:
                self._failures.add(what)
                self.message(f"the run goes on, but writing {what} failed: {error}")

    def _print(self, text: str) -> None:
        # Whoever read the lines may be gone, or a log's disk be full; the metrics have
        # it all.
        with contextlib.suppress(OSError):
            print(text, file=self._console.file, flush=True)

    def _draw(self) -> RenderableType:
        seconds, at = self._clock
        seconds += time.monotonic() - at
        share, left = self._share(seconds)
        title = Text(game_title(self._config.game), "bold")
        spent = f"{_clock(seconds)}, {_clock(left)} left" if left else _clock(seconds)
        head = Table.grid(padding=(0, 2), expand=True)
        head.add_column(no_wrap=True, min_width=len(title))
        head.add_column(ratio=1, min_width=4)
        head.add_column(no_wrap=True, min_width=4, justify="right")
        head.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0, completed=share)
        head.add_row(title, bar, f"{share:.0%}", Text(spent, "dim"))
        body = Table.grid(padding=(0, 2), expand=True)
        body.add_column(no_wrap=True, style="cyan", min_width=9)
        body.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        if self._iteration:
            body.add_row("self-play", _join(_self_play_parts(self._iteration)))
            body.add_row("learning", _join(_learning_parts(self._iteration)))
        if self.last:
            name, parts = _strength(self.last, self.first)
            body.add_row(name, _join(parts))
        return Group(head, body, *([self._note] if self._note else []))

    def _share(self, seconds: float) -> tuple[float, float | None]:
        """Returns the share of the run that is over and the seconds left, if known."""
        if self._config.minutes is not None:
            total = 60 * self._config.minutes
            return min(seconds / total, 1.0), max(total - seconds, 0.0)
        assert self._config.iterations is not None
        done = self._iteration["iteration"] if self._iteration else 0
        since_start = done - max(self._start["iteration"], 0)
        left = None
        if since_start:
            spent = self._clock[0] - self._start["seconds"]
            ahead = (self._config.iterations - done) * spent / since_start
            left = max(self._clock[0] + ahead - seconds, 0.0)
        return min(done / self._config.iterations, 1.0), left


class _MetricsFile:
    """A file of JSON lines that is appended to.

    What could not be written stays here and is tried again with the next row.
    """

    def __init__(self, path: Path):
        self._path = path
        self._size = path.stat().st_size
        self._waiting = b""

    def append(self, row: Row) -> None:
        self._waiting += _json_line(row)
        with self._path.open("ab") as file:
            file.truncate(self._size)  # the part of a row that a full disk took
            file.write(self._waiting)
        self._size += len(self._waiting)
        self._waiting = b""


class _EventFile:
    """TensorBoard events.

    `SummaryWriter` writes in a thread of its own; when the disk is full the thread
    dies, its queue fills, and the run waits for it for ever. Here errors are raised.
    """

    def __init__(self, directory: Path, purge_step: int | None):
        """Begins a file; TensorBoard forgets what older ones say from `purge_step`."""
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.0f}.azjax.{os.getpid()}"
        self._writer = RecordWriter(str(directory / name))
        self._flushed_at = -FLUSH_INTERVAL
        self._add(file_version="brain.Event:2")
        if purge_step is not None:
            start = _SessionLog(status=_SessionLog.START)
            self._add(step=purge_step, session_log=start)

    def write(self, row: Row) -> None:
        values = [
            _Summary.Value(tag=tag, simple_value=row[name])
            for name, tag in TAGS.items()
            if row.get(name) is not None
        ]
        self._add(step=row["positions"], summary=_Summary(value=values))
        if time.monotonic() - self._flushed_at > FLUSH_INTERVAL:
            self._writer.flush()
            self._flushed_at = time.monotonic()

    def close(self) -> None:
        self._writer.close()

    def _add(self, **fields: Any) -> None:
        event = _Event(wall_time=time.time(), **fields)
        self._writer.write(event.SerializeToString())


def print_summary(
    console: Console,
    *,
    game: Game,
    run_dir: Path,
    first: Row | None,
    last: Row,
    network_choice: Choice,
    search_choice: Choice,
) -> None:
    """Prints what a run came to, where it is, and how to play against it.

    Args:
        console: where to print.
        game: what was learnt.
        run_dir: the run directory.
        first: the evaluation of the first network, if it is known.
        last: the newest evaluation.
        network_choice: of the network alone in the opening position, a batch of one.
        search_choice: the same with search.
    """
    results = Table.grid(padding=(0, 2))
    results.add_column(style="cyan", no_wrap=True)
    for name, text in _results(first, last):
        results.add_row(name, text)
    for name, path in (("run", ""), ("plot", PLOT_FILE), ("player", "player")):
        results.add_row(name, Text(str(run_dir / path), overflow="fold"))
    run = shlex.quote(str(run_dir))
    opponent = shlex.quote(f"alphazero:{run_dir}")
    opinions = _opinions(game, network_choice, search_choice)
    board = Text(game.to_text(game.init()), no_wrap=True, overflow="crop")
    console.print(Text(f"\n{game_title(repr(game))}: learnt by self-play", "bold"))
    console.print(results)
    heading = "\nThe opening position (value: 1 the mover wins, -1 loses)"
    console.print(Text(heading, "bold"))
    console.print(Columns([board, opinions], padding=(0, 4)))
    for words, command in (
        ("Play against it", f"azjax play {game!r} --opponent {opponent}"),
        ("Measure it", f"azjax evaluate {run}"),
    ):
        line = Text.assemble((f"{words}:  ", "bold"), (command, "green"))
        console.print(line, soft_wrap=True)


def duration(seconds: float) -> str:
    """Returns a time as people say it: `45 s`, `7 min 24 s`, `2 h 05 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def _clock(seconds: float) -> str:
    """Returns a time in little room: `7:24`, `2:05:00`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{minutes}:{seconds:02}"
    return f"{hours}:{clock:0>5}" if hours else clock


def _results(first: Row | None, last: Row) -> Iterator[tuple[str, str]]:
    yield "time", duration(last["seconds"])
    yield "played", f"{last['games']:,} games, {last['positions']:,} positions"
    for key, name in (
        ("network_mistakes", "mistakes, network alone"),
        ("search_mistakes", "mistakes, with search"),
        ("random_score", "score against random"),
    ):
        if key in last:
            before = f"{_with_interval(first, key)} → " if first else ""
            yield name, before + _with_interval(last, key)


def _with_interval(row: Row, key: str) -> str:
    low, high = 100 * row[f"{key}_low"], 100 * row[f"{key}_high"]
    return f"{row[key]:.1%} ({low:.1f} to {high:.1f})"


def _opinions(game: Game, network: Choice, search: Choice) -> Table:
    """Returns a table of the moves in the opening position, the likeliest if many."""
    legal = np.flatnonzero(np.asarray(game.legal_action_mask(game.init())))
    policies = np.asarray(jax.device_get([network.policy[0], search.policy[0]]))
    likeliest = legal[np.argsort(-policies[1, legal], kind="stable")]
    shown = legal if len(legal) <= SUMMARY_MOVES else likeliest[:SUMMARY_MOVES]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for name in ("move", "network", "search"):
        table.add_column(name, justify="right", no_wrap=True)
    for action in shown:
        shares = (f"{policies[player, action]:.1%}" for player in range(2))
        style = "bold" if action == likeliest[0] else ""
        table.add_row(game.action_to_text(int(action)), *shares, style=style)
    if len(shown) < len(legal):
        rest = policies[:, likeliest[SUMMARY_MOVES:]].sum(axis=1)
        name = f"{len(legal) - len(shown)} more"
        table.add_row(name, *(f"{share:.1%}" for share in rest), style="dim")
    values = (f"{float(choice.value[0]):+.2f}" for choice in (network, search))
    table.add_row("value", *values, style="cyan")
    return table


def _length(config: TrainConfig) -> str:
    if config.minutes is not None:
        return f"{config.minutes:g} minutes"
    return f"{config.iterations:,} iterations"


def _self_play_parts(row: Row) -> list[Text]:
    texts = (
        f"{row['games']:,} games",
        f"{row['positions']:,} positions",
        f"{row['positions_per_second']:,.0f} a second",
        f"{row['simulations']} simulations",
    )
    return [Text(text) for text in texts]


def _learning_parts(row: Row) -> list[Text]:
    texts = [f"iteration {row['iteration']:,}"]
    if row["policy_loss"] is None:
        texts.append("collecting positions")
    else:
        texts.append(f"policy loss {row['policy_loss']:.3f}")
        texts.append(f"value loss {row['value_loss']:.3f}")
    texts.append(f"rate {row['learning_rate']:.2g}")
    return [Text(text) for text in texts]


def _strength(row: Row, first: Row | None) -> tuple[str, list[Text]]:
    """Returns what is measured, and the newest numbers beside the first ones."""
    if "network_mistakes" in row:
        what = "mistakes"
        keys = {"network_mistakes": "network ", "search_mistakes": "search "}
    else:
        what, keys = "score", {"random_score": "against random "}
    parts = []
    for key, name in keys.items():
        parts.append(Text.assemble(name, (f"{row[key]:.1%}", "bold")))
        if first and first["iteration"] != row["iteration"]:
            parts[-1].append(f" (was {first[key]:.1%})", "dim")
    return what, parts


def _join(parts: Sequence[Text]) -> Text:
    return Text.assemble((" · ", "dim")).join(parts)


def _plain(parts: Sequence[Text]) -> str:
    return ", ".join(part.plain for part in parts)


def _json_line(row: Row) -> bytes:
    return json.dumps(row).encode() + b"\n"
