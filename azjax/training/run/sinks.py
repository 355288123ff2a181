"""Services that get the metrics of a run besides TensorBoard, written in a thread."""

import dataclasses
import functools
import importlib
import importlib.util
import itertools
import json
import os
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Protocol

from azjax.files import open_regular, replace_file
from azjax.settings import Settings, Within, flattened, from_json
from azjax.training.config import RunConfig
from azjax.training.run.metrics import (
    METRICS_FILE,
    Row,
    iterate_metrics,
    numbers_by_tag,
)

SINKS_DIRECTORY = "sinks"
MAX_STATE_BYTES = 2**12
CLOSE_SECONDS = 30.0  # in which the last rows must be sent
PROJECT = "azjax"  # of W&B; the experiment of MLflow
CONNECT_SECONDS = 25.0  # maximum for W&B; a program that ends waits as long
FINISH_SECONDS = 20.0  # maximum for its upload
MLFLOW_LENGTH = 250  # of a name or a parameter (characters)

_NOT_IN_MLFLOW = re.compile(r"[^\w.\-/ ]")  # in its names
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


class WandbSink:
    """A run of Weights & Biases.

    The user's environment and settings of W&B select server, key, project and mode. Its
    metrics are drawn over the positions.

    id: of the run.
    place: its address, or the directory of an offline run.
    """

    title = "Weights & Biases"

    @staticmethod
    def check() -> None:
        """Checks that W&B has a valid key, without asking for it."""
        wandb = importlib.import_module("wandb")
        if wandb.setup().settings.mode != "online":
            return
        try:
            has_key = wandb.login(prompt=False, verify=False)
        except wandb.errors.Error as error:
            raise ValueError(f"report.sinks wandb: {error}") from None
        if not has_key:
            raise ValueError(
                "report.sinks wandb: W&B has no key: run `wandb login`, or set "
                "WANDB_MODE=offline"
            )

    def __init__(self, files: Path, config: RunConfig, run_id: str | None):
        """Connects to the run with an id, or to a new one; W&B writes its files in the
        directory `files`."""
        wandb = importlib.import_module("wandb")
        user = wandb.setup().settings
        values = config.to_json()
        del values["run_dir"]  # a path of this machine
        self.id = run_id or uuid.uuid4().hex
        self._run = wandb.init(
            id=self.id,
            resume="allow",
            project=user.project or PROJECT,
            name=user.run_name or (None if run_id else config.directory.name),
            dir=files,
            config=values,
            allow_val_change=True,  # the length may change
            settings=wandb.Settings(
                console="off",  # the display is redrawn four times a second
                disable_code=True,
                disable_git=True,  # otherwise it uploads changes of the code
                save_code=False,
                silent=True,  # its lines would interrupt the display
                init_timeout=CONNECT_SECONDS,
                finish_timeout=FINISH_SECONDS,
            ),
        )
        run = self._run
        self.place = (
            f"W&B writes to {run.sync_dir}; `wandb sync` uploads it"
            if run.offline
            else f"W&B: {run.url}"
        )
        run.define_metric("*", step_metric="positions")

    def write(self, row: Row) -> None:
        """Writes the numbers of a row, its positions and its seconds."""
        counters = {name: row[name] for name in ("positions", "seconds")}
        # Without `step`: W&B ignores a step that it has already seen.
        self._run.log({**numbers_by_tag(row), **counters})

    def close(self) -> None:
        """Waits for the upload, at most `FINISH_SECONDS`."""
        self._run.finish()


class MlflowSink:
    """A run of MLflow; the step of its metrics is the number of positions.

    `MLFLOW_TRACKING_URI` selects the server or the database, `MLFLOW_EXPERIMENT_NAME`
    the experiment.

    id: of the run.
    place: its id and the address of the server.
    """

    title = "MLflow"

    @staticmethod
    def check() -> None:
        """Does nothing: MLflow needs no key."""

    def __init__(self, files: Path, config: RunConfig, run_id: str | None):
        """Connects to the run with an id, or to a new one, which gets the settings as
        parameters."""
        del files  # MLflow writes none
        mlflow = importlib.import_module("mlflow")
        self._metric = mlflow.entities.Metric
        self._client = client = mlflow.MlflowClient()
        if run_id is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
            experiment = client.get_experiment_by_name(name)
            experiment_id = (
                client.create_experiment(name)
                if experiment is None
                else experiment.experiment_id
            )
            run = client.create_run(experiment_id, run_name=config.directory.name)
            run_id = run.info.run_id
            values = config.to_json()
            del values["run_dir"]  # a path of this machine
            params = [
                mlflow.entities.Param(_mlflow_name(name), str(value)[:MLFLOW_LENGTH])
                for name, value in flattened(values)
            ]
            client.log_batch(run_id, params=params)
        else:
            client.update_run(run_id, status="RUNNING")
        self.id = run_id
        self.place = f"MLflow: run {self.id} in {mlflow.get_tracking_uri()}"

    def write(self, row: Row) -> None:
        """Writes the numbers of a row and its seconds."""
        numbers = numbers_by_tag(row) | {"seconds": row["seconds"]}
        now = round(1000 * time.time())
        metrics = [
            self._metric(_mlflow_name(tag), number, now, row["positions"])
            for tag, number in numbers.items()
        ]
        self._client.log_batch(self.id, metrics)

    def close(self) -> None:
        """Marks the run as finished."""
        self._client.set_terminated(self.id)


def _mlflow_name(text: str) -> str:
    """Returns a text with the characters that MLflow allows in names."""
    return _NOT_IN_MLFLOW.sub("_", text)[:MLFLOW_LENGTH]


SERVICES = {"wandb": WandbSink, "mlflow": MlflowSink}
STATE_FILES = tuple(f"{SINKS_DIRECTORY}/{name}.json" for name in SERVICES)


def check_sinks(names: Sequence[str]) -> None:
    """Checks, without a connection, that packages and keys of services are there."""
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
class _State(Settings):
    """What is stored about a service's run.

    Attributes:
        id: of the service's run.
        iteration: last iteration whose metrics it has.
        evaluation: the same for evaluations.
    """

    id: str
    iteration: Annotated[int, Within(ge=-1)] = -1
    evaluation: Annotated[int, Within(ge=-1)] = -1


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
        """Hands a row to the thread; raises an OSError if the service has failed."""
        self._check()
        self._rows.put(row)

    def close(self) -> None:
        """Waits until all rows are written; raises an OSError if the service has
        failed, or takes longer than `CLOSE_SECONDS`."""
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
            state = _read_state(self._path)
            sink = self._connect(None if state is None else state.id)
            try:
                state = state or _State(sink.id)
                _write_state(self._path, state)
                self._report(sink.place)
                rows = itertools.chain(self._first_rows, iter(self._rows.get, None))
                for row in rows:
                    kind, iteration = row["kind"], row["iteration"]
                    if iteration > getattr(state, kind):
                        sink.write(row)
                        state = dataclasses.replace(state, **{kind: iteration})
                        _write_state(self._path, state)
            finally:
                sink.close()
        except Exception as error:  # a library may raise any
            self._error = error


def _read_state(path: Path) -> _State | None:
    """Reads the state of a sink from a file of any content; None if it is missing."""
    try:
        with open_regular(path, MAX_STATE_BYTES) as file:
            state = from_json(_State, json.loads(file.read(MAX_STATE_BYTES)))
        if not _ID.fullmatch(state.id):
            raise ValueError(f"id {state.id!r}")
        return state
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _write_state(path: Path, state: _State) -> None:
    replace_file(path, json.dumps(state.to_json()).encode() + b"\n")
