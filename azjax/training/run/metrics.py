"""Metrics of a run as files: `metrics.jsonl` and TensorBoard events."""

import functools
import io
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tensorboardX.proto import event_pb2, summary_pb2
from tensorboardX.record_writer import RecordWriter

from azjax.files import Directory, open_regular
from azjax.settings import is_number

METRICS_FILE = "metrics.jsonl"
MAX_METRICS_BYTES = 2**31
MAX_ROW_BYTES = 2**18  # longer lines are no rows
MAX_NUMBER = 1e18  # in a row; larger ones are errors
FLUSH_INTERVAL = 10.0  # between two flushes of TensorBoard events (seconds)

Row = Mapping[str, Any]

TAGS = {
    "gradient_norm": "learner/gradient_norm",
    "weight_norm": "learner/weight_norm",
    "learning_rate": "learner/learning_rate",
    "games": "self_play/games",
    "epsilon": "self_play/epsilon",
    "simulations": "self_play/simulations",
    "policy_entropy": "self_play/policy_entropy",
    "policy_gain": "self_play/policy_gain",
    "value_gain": "self_play/value_gain",
    "first_player_score": "self_play/first_player_score",
    "policy_mass_lost": "self_play/policy_mass_lost",
    "eligible_share": "replay/eligible_share",
    "eligibility_delay": "replay/eligibility_delay",
    "positions_per_second": "speed/positions_per_second",
    "self_play_seconds": "speed/self_play_seconds",
    "update_seconds": "speed/update_seconds",
}

# Fields of all rows of a kind, besides those of players and opponents.
_COUNTERS = ("iteration", "seconds", "positions", "games")
_NEEDED = {
    "iteration": (*_COUNTERS, "positions_per_second"),
    "evaluation": (*_COUNTERS, "updates"),
}

SCORES = "scores"  # by opponent: `score`, the fraction of the points, and its interval
# Grades in solved positions, all in [0, 1]; in rows they follow the player's name. In
# games with chance the mean win probability that a move loses.
MISTAKES, LOST = "mistakes", "win_probability_lost"

# Protobuf creates these classes at import; type checkers do not see them.
_Event, _SessionLog = vars(event_pb2)["Event"], vars(event_pb2)["SessionLog"]
_Summary = vars(summary_pb2)["Summary"]


def read_metrics(path: Directory, max_bytes: int = -1) -> list[dict[str, Any]]:
    """Reads the rows of a metrics file; see `iterate_metrics`."""
    return list(iterate_metrics(path, max_bytes))


def iterate_metrics(path: Directory, max_bytes: int = -1) -> Iterator[dict[str, Any]]:
    """Yields the rows of a metrics file of any origin, one in memory at a time; none if
    the file is missing.

    Skips lines that are no rows of a run: their writer was killed, or is still writing,
    or the file comes from elsewhere. Reads at most `max_bytes`, unless it is -1; raises
    an OSError if the file is no regular one, or has more than `MAX_METRICS_BYTES`.
    """
    try:
        file = open_regular(path, MAX_METRICS_BYTES)
    except FileNotFoundError:
        return
    with file:
        part = file if max_bytes < 0 else io.BytesIO(file.read(max_bytes))
        yield from filter(_is_row, parse_rows(part))


def _is_row(row: Row) -> bool:
    """Returns whether a row has the fields that all rows of its kind have, and the
    right types."""
    kind, scores = row.get("kind"), row.get(SCORES, {})
    if kind not in ("iteration", "evaluation") or not isinstance(scores, dict):
        return False
    numbers = {name: row[name] for name in row if name not in ("kind", SCORES)}
    needed = list(_NEEDED[kind])
    measure, names = graded(row)
    for name in names:
        needed += [f"{name}_{measure}{end}" for end in ("", "_low", "_high")]
    return (
        all(_is_finite(row.get(name)) for name in needed)
        and type(row["iteration"]) is type(row["positions"]) is int
        and all(
            value is None or (is_number(value) and not abs(value) > MAX_NUMBER)
            for value in numbers.values()
        )
        and all(
            isinstance(score, dict)
            and all(
                _is_finite(score.get(f"score{end}")) for end in ("", "_low", "_high")
            )
            for score in scores.values()
        )
    )


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) <= MAX_NUMBER  # which excludes NaN


def parse_rows(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yields the JSON objects of a metrics file, or of a part of one, of any content;
    see `iterate_metrics`."""
    # A longer line is read in parts, which are not JSON.
    for line in iter(functools.partial(file.readline, MAX_ROW_BYTES), b""):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def is_evaluation(row: object) -> bool:
    """Returns whether a value of any origin is the row of an evaluation."""
    return isinstance(row, dict) and _is_row({**row, "kind": "evaluation"})


def losses(row: Row) -> dict[str, float]:
    """Returns the losses of an iteration by head; empty without updates."""
    return {
        name.removesuffix("_loss"): value
        for name, value in row.items()
        if name.endswith("_loss") and value is not None
    }


def check_finite(metrics: Row, iteration: int, directory: Directory) -> None:
    """Raises a ValueError if a loss of an iteration is not finite, or the gradients or
    weights that they gave.

    The losses of an update are computed with the weights before it, so the weights that
    are saved need a check of their own.
    """
    numbers = {f"{name}_loss": value for name, value in losses(metrics).items()}
    numbers |= {name: metrics.get(name) for name in ("gradient_norm", "weight_norm")}
    for name, value in numbers.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(
                f"{name} is {value} in iteration {iteration}: the run is stopped; "
                f"earlier checkpoints in {directory} are intact; try a lower learning "
                "rate, and check custom losses and targets"
            )


def graded(row: Row) -> tuple[str, list[str]]:
    """Returns the kind of the grades in an evaluation, `MISTAKES` or `LOST`, and the
    names of the players that have one."""
    kind = LOST if any(name.endswith(f"_{LOST}") for name in row) else MISTAKES
    ending = f"_{kind}"
    return kind, [name.removesuffix(ending) for name in row if name.endswith(ending)]


def percent(kind: str, rate: float) -> str:
    """Formats a rate in [0, 1] of a kind: `SCORES`, `MISTAKES` or `LOST`."""
    return f"{rate:.{_decimals(kind)}%}"


def percent_with_interval(kind: str, rate: float, low: float, high: float) -> str:
    """Formats a rate in [0, 1] with its interval: `12.3% (10.2 to 14.8)`."""
    digits = _decimals(kind)
    return f"{percent(kind, rate)} ({100 * low:.{digits}f} to {100 * high:.{digits}f})"


def _decimals(kind: str) -> int:
    return 2 if kind == LOST else 1


def opponents(row: Row) -> list[str]:
    """Returns the opponents with a score in an evaluation."""
    return list(row.get(SCORES, {}))


def numbers_by_tag(row: Row) -> dict[str, float]:
    """Returns the fields of a row in `TAGS`, and its losses, grades and scores."""
    numbers = {tag: row.get(name) for name, tag in TAGS.items()}
    numbers |= {f"loss/{name}": value for name, value in losses(row).items()}
    kind, names = graded(row)
    for name in names:
        numbers[f"{kind}/{name}"] = row[f"{name}_{kind}"]
    for name in opponents(row):
        numbers[f"score/{name}"] = row[SCORES][name]["score"]
    return {tag: number for tag, number in numbers.items() if number is not None}


def json_line(row: Row) -> bytes:
    """Returns a row as a line of a metrics file."""
    return json.dumps(row).encode() + b"\n"


class MetricsFile:
    """An append-only file of JSON lines.

    waiting: bytes that could not be written; retried with the next row.
    """

    def __init__(self, path: Path):
        about = path.stat()
        self._path, self._size, self._inode = path, about.st_size, about.st_ino
        self.waiting = b""

    def append(self, row: Row) -> None:
        """Writes a row, and rows that could not be written before; raises an OSError if
        the file cannot be written, or is not there any more."""
        self.waiting += json_line(row)
        with self._path.open("r+b") as file:
            if os.fstat(file.fileno()).st_ino != self._inode:
                raise OSError(f"{self._path} was replaced")
            file.seek(self._size)  # overwrites a partial row after a full disk
            file.write(self.waiting)
        self._size += len(self.waiting)
        self.waiting = b""


class EventFile:
    """TensorBoard events.

    In place of `SummaryWriter`, whose writer thread dies on a full disk and then blocks
    the run; here errors are raised.
    """

    def __init__(self, directory: Path, purge_step: int | None):
        """Creates a file; TensorBoard discards older events from `purge_step` on."""
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.6f}.{os.getpid()}"
        self._writer = RecordWriter(str(directory / name))
        self._flushed_at = -FLUSH_INTERVAL
        self._add(file_version="brain.Event:2")
        if purge_step is not None:
            start = _SessionLog(status=_SessionLog.START)
            self._add(step=purge_step, session_log=start)

    def write(self, row: Row) -> None:
        """Writes the numbers of a row at its number of positions."""
        values = [
            _Summary.Value(tag=tag, simple_value=number)
            for tag, number in numbers_by_tag(row).items()
        ]
        self._add(step=row["positions"], summary=_Summary(value=values))
        if time.monotonic() - self._flushed_at > FLUSH_INTERVAL:
            self._writer.flush()
            self._flushed_at = time.monotonic()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()

    def _add(self, **fields: Any) -> None:
        event = _Event(wall_time=time.time(), **fields)
        self._writer.write(event.SerializeToString())
