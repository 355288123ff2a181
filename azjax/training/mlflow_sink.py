"""Metrics of a run in MLflow."""

import importlib
import os
import re
import time
from pathlib import Path
from typing import Any

from azjax.training.metrics import Row, numbers_by_tag
from azjax.training.run_config import RunConfig, flattened

EXPERIMENT = "azjax"
MAX_LENGTH = 250  # of a name or a parameter (characters)
_NOT_IN_NAMES = re.compile(r"[^\w.\-/ ]")


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
        """Connects to a run.

        Args:
            files: unused; MLflow writes no files.
            config: of the run.
            run_id: of the run to continue; None for a new one.
        """
        del files
        mlflow = importlib.import_module("mlflow")  # an extra
        self._metric = mlflow.entities.Metric
        self._client = mlflow.MlflowClient()
        if run_id is None:
            self.id = _create_run(mlflow, self._client, config)
        else:
            self.id = run_id
            self._client.update_run(run_id, status="RUNNING")
        self.place = f"MLflow: run {self.id} in {mlflow.get_tracking_uri()}"

    def write(self, row: Row) -> None:
        """Writes the numbers of a row and its seconds."""
        numbers = numbers_by_tag(row) | {"seconds": row["seconds"]}
        now = round(1000 * time.time())
        metrics = [
            self._metric(_name(tag), number, now, row["positions"])
            for tag, number in numbers.items()
        ]
        self._client.log_batch(self.id, metrics)

    def close(self) -> None:
        """Marks the run as finished."""
        self._client.set_terminated(self.id)


def _create_run(mlflow: Any, client: Any, config: RunConfig) -> str:
    """Returns the id of a new run with the settings as parameters."""
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
    experiment = client.get_experiment_by_name(name)
    experiment_id = (
        client.create_experiment(name)
        if experiment is None
        else experiment.experiment_id
    )
    run = client.create_run(experiment_id, run_name=config.directory.name)
    values = config.to_json()
    del values["run_dir"]  # a path of this machine
    params = [
        mlflow.entities.Param(_name(name), str(value)[:MAX_LENGTH])
        for name, value in flattened(values)
    ]
    client.log_batch(run.info.run_id, params=params)
    return run.info.run_id


def _name(text: str) -> str:
    """Returns a text with the characters that MLflow allows in names."""
    return _NOT_IN_NAMES.sub("_", text)[:MAX_LENGTH]
