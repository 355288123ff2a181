"""Compares runs with `--exact-lanes` on different numbers of devices of this machine.

    python experiments/bench/device_counts.py --game go:5 --devices 1 2 4 8 2x2

Trains the same run on each number of devices, into which XLA divides the CPU; `2x2`
means two processes with two devices each. The metrics except times, the training state
and the weights must be equal, bit for bit. Without `--exact-lanes` they are equal up to
rounding, which decides ties in searches; the script prints the fraction of moves that
differ in the first iteration. `kill_resume.py --devices` kills and continues such runs.

Exits with an error if two runs differ.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import multiprocessing
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from kill_resume import Layout, LossError, TrainingRun, check_metrics
from rich.console import Console
from rich.table import Table

from azjax import games
from azjax.commands.train import parse_train_config
from azjax.players import first_network
from azjax.training import make_algorithm, train_iteration

RUN_OPTIONS_TEXT = """
    --trunk conv --network.trunk.channels 16 --network.trunk.num-blocks 1
    --self-play.num-games 64 --self-play.moves-per-chunk 8
    --self-play.num-simulations 8
    --replay.min-positions 512 --learner.batch-size 64 --learner.replay-ratio 1
    --evaluation.num-evaluations 2 --evaluation.num-positions 64
    --evaluation.num-simulations 4 --evaluation.num-games 16
    --checkpoint.every-minutes 0 --checkpoint.keep 2
"""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    game: game spec.
    iterations: length of each run.
    devices: numbers of devices; PROCESSESxDEVICES for several processes.
    options: additional options of `azjax train`, in one text: `--options="--seed 1"`.
    patience: time limit of each step, including compilation (seconds).
    out: directory of the runs; existing runs in it are deleted. A temporary directory
        by default.
    """

    game: str = "connect_four"
    iterations: int = 20
    devices: tuple[str, ...] = ("1", "2", "4", "8", "2x2")
    options: str = ""
    patience: float = 1800.0
    out: Path | None = None

    def __post_init__(self):
        if not self.layouts:
            raise ValueError("devices must have one number or more")
        if self.iterations < 1:
            raise ValueError(f"iterations must be >= 1: {self.iterations}")

    @property
    def layouts(self) -> list[Layout]:
        """Returns the parsed `devices`."""
        return [Layout.read(text) for text in self.devices]

    @property
    def train_options(self) -> list[str]:
        """Returns the options of `azjax train` that `TrainingRun` does not set."""
        return [*RUN_OPTIONS_TEXT.split(), *shlex.split(self.options)]


def main(settings: Settings) -> None:
    """Compares, prints tables, and exits with an error if two runs differ."""
    console = Console()
    with contextlib.ExitStack() as stack:
        root = settings.out
        if root is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        root.mkdir(parents=True, exist_ok=True)
        try:
            compare_runs(settings, root, console)
        except LossError as error:
            console.print(f"failed: {error}", style="bold red", markup=False)
            raise SystemExit(1) from None


def compare_runs(settings: Settings, root: Path, console: Console) -> None:
    """Trains the run on each number of devices.

    Raises:
        LossError: a run failed, or differs from the first one.
    """
    table = Table(
        "devices",
        "rows",
        "policy loss",
        "metrics",
        "state",
        "weights",
        title=f"{settings.game}, {settings.iterations} iterations with --exact-lanes",
        box=None,
    )
    found = []
    for layout in settings.layouts:
        directory = root / f"{layout}_devices"
        shutil.rmtree(directory, ignore_errors=True)
        run = TrainingRun(
            directory,
            settings.iterations,
            settings.patience,
            game=settings.game,
            options=["--exact-lanes", *settings.train_options],
            most_devices=max(one.devices for one in settings.layouts),
        )
        run.finish(layout)
        check_metrics(run)
        found.append(outcome(run))
        rows, *digests = found[-1]
        loss = [row["policy_loss"] for row in rows if row["kind"] == "iteration"][-1]
        table.add_row(str(layout), str(len(rows)), repr(loss), *digests)
        console.print(f"trained on {layout} devices: {digests}")
    console.print(table)
    for text, other in zip(settings.devices, found, strict=True):
        if other != found[0]:
            raise LossError(
                f"the run on {text} devices differs from that on {settings.devices[0]}"
            )
    console.print("the runs are the same, bit for bit")
    for number, share in shares_of_other_moves(settings).items():
        console.print(
            f"without --exact-lanes {share:.3%} of the moves of the first iteration on "
            f"{number} devices are not those on 1"
        )


def outcome(run: TrainingRun) -> tuple[list[dict[str, Any]], str, str, str]:
    """Returns the metrics without times, and digests of metrics, state and weights."""
    rows = run.metrics()
    weights = (run.directory / "player" / "player.safetensors").read_bytes()
    return rows, digest(repr(rows).encode()), f"{run.digest():08x}", digest(weights)


def digest(data: bytes) -> str:
    """Returns the first characters of the data's SHA-256 digest."""
    return hashlib.sha256(data).hexdigest()[:12]


def shares_of_other_moves(settings: Settings) -> dict[int, float]:
    """Returns the fraction of moves that differ without `--exact-lanes`.

    Compares the first iteration on each other number of devices with one device.
    """
    numbers = sorted({layout.devices for layout in settings.layouts} - {1})
    if not numbers:
        return {}
    with concurrent.futures.ProcessPoolExecutor(
        1,
        multiprocessing.get_context("spawn"),  # read only once by JAX
        initializer=set_devices,
        initargs=(numbers[-1],),
    ) as pool:
        on_one, *others = pool.map(
            functools.partial(first_moves, settings), [1, *numbers]
        )
    return {
        number: float(np.mean(moves != on_one))
        for number, moves in zip(numbers, others, strict=True)
    }


def set_devices(number: int) -> None:
    """Makes JAX find as many CPU devices in this process."""
    flag = f"--xla_force_host_platform_device_count={number}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    threads = max(os.cpu_count() or 1, number)
    os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": str(threads)}


def first_moves(settings: Settings, number: int) -> np.ndarray:
    """Returns the moves of the first iteration on `devices` devices."""
    arguments = ["--preset", "cpu", "--iterations", str(settings.iterations)]
    config = parse_train_config(
        settings.game, [*arguments, *settings.train_options], prog="azjax train"
    )
    game = games.make(config.game)
    network, variables = first_network(config.seed, game, config.network)
    algorithm = make_algorithm(config, game, network, devices=jax.devices()[:number])
    state, _ = train_iteration(algorithm, config, algorithm.init(variables), 0.0)
    return np.asarray(state.replay.chunk.action)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
