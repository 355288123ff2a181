"""Metrics of a run in Weights & Biases."""

import importlib
import uuid
from pathlib import Path
from typing import Any

from azjax.training.metrics import Row, numbers_by_tag
from azjax.training.run_config import RunConfig

PROJECT = "azjax"
CONNECT_SECONDS = 25.0  # maximum; a program that ends waits as long
FINISH_SECONDS = 20.0


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
        """Checks that W&B has a key, without asking for it.

        Raises:
            ValueError: the key is missing or malformed.
        """
        wandb = _wandb()
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
        """Connects to a run.

        Args:
            files: local directory in which W&B writes its files.
            config: of the run.
            run_id: of the run to continue; None for a new one.
        """
        wandb = _wandb()
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


def _wandb() -> Any:
    return importlib.import_module("wandb")  # an extra
