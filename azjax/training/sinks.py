"""Services that get the metrics of a run besides TensorBoard, written in a thread."""

import dataclasses
import functools
import importlib.util
import itertools
import json
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from azjax.checks import check_int
from azjax.players.weights import open_regular
from azjax.remote import replace_file
from azjax.training.metrics import METRICS_FILE, Row, iterate_metrics
from azjax.training.mlflow_sink import MlflowSink
from azjax.training.run_config import RunConfig
from azjax.training.wandb_sink import WandbSink

SINKS_DIRECTORY = "sinks"
MAX_STATE_BYTES = 2**12
CLOSE_SECONDS = 30.0  # in which the last rows must be sent
SERVICES = {"wandb": WandbSink, "mlflow": MlflowSink}
STATE_FILES = tuple(f"{SINKS_DIRECTORY}/{name}.json" for name in SERVICES)

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Sink(Protocol):
    """Gets the metrics of a run."""

    def write(self, row: Row) -> None:
        """Writes a row of `metrics.jsonl`; raises an OSError if that fails."""

    def close(self) -> None:
        """Writes what is left and closes the sink; raises as `write`."""


class ServiceSink(Sink, Protocol):
    """A sink in a service; its methods may raise any exception of the library.

    id: of the service's run.
    place: where the user finds it.
    """

    id: str
    place: str


def check_sinks(names: Sequence[str]) -> None:
    """Checks that services can be used, without a connection.

    Raises:
        ValueError: a package or the user's key is missing.
    """
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:  # a directory called `wandb` has none
            raise ValueError(
                f"report.sinks {name}: {name} is not installed: pip install "
                f"'azjax[{name}]'"
            )
        SERVICES[name].check()


def open_sinks(
    files: Path,
    config: RunConfig,
    report: Callable[[str], None],
    *,
    continues: bool,
) -> Iterator[tuple[str, "BackgroundSink"]]:
    """Yields the sinks of a run with names for messages.

    A continued run gets the services' runs that it had. Each sink gets the rows so far
    that it lacks, from the metrics file.

    Args:
        files: the local directory of the run's files.
        config: of the run.
        report: called in another thread with a line about where a service's run is.
        continues: whether the run continues from a checkpoint.
    """
    for name in config.report.sinks:
        path = files / SINKS_DIRECTORY / f"{name}.json"
        if not continues:
            path.unlink(missing_ok=True)
        connect = functools.partial(SERVICES[name], files, config)
        rows = iterate_metrics(files / METRICS_FILE)
        yield f"to {SERVICES[name].title}", BackgroundSink(connect, path, rows, report)


@dataclasses.dataclass(frozen=True)
class _State:
    """What is stored about a service's run.

    id: of the service's run.
    iteration: last iteration whose metrics it has.
    evaluation: the same for evaluations.
    """

    id: str
    iteration: int = -1
    evaluation: int = -1


class BackgroundSink:
    """A sink in a service, in a thread, so that a slow network does not delay the run.

    After an error nothing more is written; the next call raises it. Rows that were not
    written are written when the run continues, rows that were are skipped.
    """

    def __init__(
        self,
        connect: Callable[[str | None], ServiceSink],
        path: Path,
        rows: Iterable[Row],
        report: Callable[[str], None],
    ):
        """Connects in the thread.

        Args:
            connect: connects to the service's run with an id, a new one if it is None.
            path: of the file with the id and the last rows that were written.
            rows: the first rows to write, read in the thread; those that `write` gets
                too are written once.
            report: called in the thread with a line about where the run is.
        """
        self._connect, self._path, self._report = connect, path, report
        self._rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self._first_rows = rows
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, row: Row) -> None:
        """Hands a row to the thread.

        Raises:
            OSError: the service failed, in this or in an earlier call.
        """
        self._check()
        self._rows.put(row)

    def close(self) -> None:
        """Waits until all rows are written, at most `CLOSE_SECONDS`.

        Raises:
            OSError: the service failed or takes longer.
        """
        self._rows.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            raise OSError(
                f"not finished within {CLOSE_SECONDS:.0f} seconds; the rest is written "
                "when the run continues"
            )
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            text = " ".join(str(self._error).split())[:200]
            raise OSError(f"{type(self._error).__name__}: {text}") from self._error

    def _run(self) -> None:
        try:
            self._write_rows()
        except Exception as error:  # a library may raise any
            self._error = error

    def _write_rows(self) -> None:
        state = _read_state(self._path)
        sink = self._connect(None if state is None else state.id)
        try:
            state = state or _State(sink.id)
            _write_state(self._path, state)
            self._report(sink.place)
            for row in itertools.chain(self._first_rows, iter(self._rows.get, None)):
                kind, iteration = row["kind"], row["iteration"]
                if iteration > getattr(state, kind):
                    sink.write(row)
                    state = dataclasses.replace(state, **{kind: iteration})
                    _write_state(self._path, state)
        finally:
            sink.close()


def _read_state(path: Path) -> _State | None:
    """Reads the state of a sink from a file of any content; None if it is missing.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    try:
        with open_regular(path, MAX_STATE_BYTES) as file:
            state = _State(**json.loads(file.read(MAX_STATE_BYTES)))
        if not _ID.fullmatch(state.id):
            raise ValueError(f"id {state.id!r}")
        check_int("iteration", state.iteration, -1)
        check_int("evaluation", state.evaluation, -1)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return state


def _write_state(path: Path, state: _State) -> None:
    replace_file(path, json.dumps(dataclasses.asdict(state)).encode() + b"\n")
