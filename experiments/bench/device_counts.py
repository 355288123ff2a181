"""Compares runs with `--exact-lanes` on different numbers of devices of this machine.

    python experiments/bench/device_counts.py --game go:5 --devices 1 2 4 8 2x2

Trains the same run on each number of devices, into which XLA divides the CPU; `2x2`
means two processes with two devices each. The metrics except times, the training state
and the weights must be equal, bit for bit. Without `--exact-lanes` they are equal up to
rounding, which decides ties in searches; the script prints the fraction of moves that
differ in the first iteration.

    python experiments/bench/device_counts.py --kills 10 --iterations 120

Trains the run once on the first number of devices. Then trains it again, kills it at
random moments with SIGKILL and continues it each time on the next number of devices.

Exits with an error if two runs differ.

XLA's results on a CPU depend on its number of threads, which is the number of cores or
of devices, whichever is larger. All runs here use as many threads as the largest number
of devices (`NPROC`).
"""

import concurrent.futures
import contextlib
import copy
import dataclasses
import functools
import hashlib
import itertools
import multiprocessing
import os
import random
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import tyro
from kill_resume import (
    LossError,
    TrainingRun,
    check_equal,
    check_metrics,
    check_resumed,
)
from rich.console import Console
from rich.table import Table

from azjax import games
from azjax.commands.train import parse_train_config
from azjax.players import first_network
from azjax.training import make_algorithm, train_iteration

ITERATIONS_PER_KILL = 6
RUN_OPTIONS_TEXT = """
    --trunk conv --network.trunk.channels 16 --network.trunk.num-blocks 1
    --self-play.num-games 64 --self-play.moves-per-chunk 8
    --self-play.num-simulations 8
    --replay.min-positions 512 --learner.batch-size 64 --learner.replay-ratio 1
    --evaluation.num-evaluations 2 --evaluation.num-positions 64
    --evaluation.num-simulations 4 --evaluation.num-games 16
    --checkpoint.every-minutes 0 --checkpoint.keep 2
"""
IS_TIME = ("seconds", "positions_per_second", "self_play_seconds", "update_seconds")


class Layout(NamedTuple):
    """The number of processes of a run and of devices per process."""

    processes: int
    devices: int

    @classmethod
    def read(cls, text: str) -> "Layout":
        """Parses `DEVICES` or `PROCESSESxDEVICES`.

        Raises:
            ValueError: the text has another form.
        """
        processes, _, devices = text.rpartition("x")
        numbers = (processes or "1", devices)
        if not all(number.isdecimal() and int(number) for number in numbers):
            raise ValueError(
                f"devices must be a number, or two as in 2x2 for two processes: {text}"
            )
        return cls(*map(int, numbers))

    def __str__(self) -> str:
        """Returns the text that `read` parses."""
        return str(self.devices) if self.processes == 1 else f"{self[0]}x{self[1]}"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    game: game spec.
    iterations: length of each run.
    devices: numbers of devices; PROCESSESxDEVICES for several processes.
    options: additional options of `azjax train`, in one text: `--options="--seed 1"`.
    kills: number of times that a run is killed; 0 compares uninterrupted runs.
    seed: seed of the moments of the kills.
    patience: time limit of each step, including compilation (seconds).
    out: directory of the runs; existing runs in it are deleted. A temporary directory
        by default.
    """

    game: str = "connect_four"
    iterations: int = 20
    devices: tuple[str, ...] = ("1", "2", "4", "8", "2x2")
    options: str = ""
    kills: int = 0
    seed: int = 0
    patience: float = 1800.0
    out: Path | None = None

    def __post_init__(self):
        if not self.layouts:
            raise ValueError("devices must have one number or more")
        if self.kills < 0:
            raise ValueError(f"kills must be >= 0: {self.kills}")
        if self.iterations < max(1, self.kills * ITERATIONS_PER_KILL):
            raise ValueError(
                f"iterations must be >= 1, and >= {ITERATIONS_PER_KILL} for each kill: "
                f"{self.iterations}"
            )

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
    compare = kill_and_compare if settings.kills else compare_runs
    with contextlib.ExitStack() as stack:
        root = settings.out
        if root is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        root.mkdir(parents=True, exist_ok=True)
        try:
            compare(settings, root, console)
        except LossError as error:
            console.print(f"failed: {error}", style="bold red", markup=False)
            raise SystemExit(1) from None


def new_run(settings: Settings, directory: Path) -> TrainingRun:
    """Returns a run that has not started."""
    shutil.rmtree(directory, ignore_errors=True)
    options = ["--exact-lanes", *settings.train_options]
    return TrainingRun(
        directory, settings.iterations, settings.patience, settings.game, options
    )


def environment(settings: Settings, devices: int) -> dict[str, str]:
    """Returns environment variables that make JAX find `devices` CPU devices."""
    flag = f"--xla_force_host_platform_device_count={devices}"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    most = max(layout.devices for layout in settings.layouts)
    threads = max(os.cpu_count() or 1, most)
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "NPROC": str(threads)}


@contextlib.contextmanager
def session(
    run: TrainingRun, settings: Settings, layout: Layout
) -> Iterator[list[subprocess.Popen]]:
    """Runs all processes of a session; kills the remaining ones on exit."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with contextlib.ExitStack() as stack:
        processes = []
        for number in range(layout.processes):
            member = copy.copy(run)
            if number:
                member.log = run.directory.with_suffix(f".{number}.log")
            if layout.processes > 1:
                count = str(layout.processes)
                member.command = [
                    *(*run.command, "--distributed", "--coordinator", address),
                    *("--num-processes", count, "--process-id", str(number)),
                ]
            variables = environment(settings, layout.devices)
            processes.append(stack.enter_context(member.session(variables)))
        yield processes


def finish(run: TrainingRun, settings: Settings, layout: Layout) -> None:
    """Runs the training until it ends.

    Raises:
        LossError: it failed or exceeded the time limit.
    """
    with session(run, settings, layout) as processes:
        for process in processes:
            try:
                status = process.wait(settings.patience)
            except subprocess.TimeoutExpired:
                raise LossError(
                    f"no end within {settings.patience:g} seconds"
                ) from None
            if status:
                raise LossError(f"a process ended with {status}:\n{run.output()}")


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
        run = new_run(settings, root / f"{layout}_devices")
        finish(run, settings, layout)
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
    rows = [
        {name: value for name, value in row.items() if name not in IS_TIME}
        for row in run.rows()
    ]
    weights = (run.directory / "player" / "player.safetensors").read_bytes()
    return rows, digest(repr(rows).encode()), f"{run.digest():08x}", digest(weights)


def digest(data: bytes) -> str:
    """Returns the first characters of the data's SHA-256 digest."""
    return hashlib.sha256(data).hexdigest()[:12]


def kill_and_compare(settings: Settings, root: Path, console: Console) -> None:
    """Compares a run that is killed with an uninterrupted run.

    Raises:
        LossError: a run failed, or the two differ.
    """
    undisturbed, killed = (
        new_run(settings, root / name) for name in ("undisturbed", "killed")
    )
    finish(undisturbed, settings, settings.layouts[0])
    console.print(f"finished an uninterrupted run of {settings.iterations} iterations")
    table = Table(
        "session", "devices", "resumed after", "newest checkpoint at its end", box=None
    )
    layouts = itertools.cycle(settings.layouts)
    for number, layout in enumerate(kill_often(killed, settings, layouts), start=1):
        row = (number, layout, killed.resumed() or "-", killed.newest() or "-")
        table.add_row(*map(str, row))
        console.print(f"killed on {layout} devices, iterations {row[2]} to {row[3]}")
    newest = killed.newest()
    layout = next(layouts)
    finish(killed, settings, layout)
    check_resumed(killed, newest)
    last = (settings.kills + 1, layout, newest or "-", killed.newest())
    table.add_row(*map(str, last))
    console.print(table)
    check_equal(undisturbed, killed)
    if outcome(undisturbed) != outcome(killed):
        raise LossError("the metrics or the weights differ")
    console.print(
        f"after {settings.kills} kills the run is equal, bit for bit, to the other one"
    )


def kill_often(
    run: TrainingRun, settings: Settings, layouts: Iterator[Layout]
) -> Iterator[Layout]:
    """Kills all processes of the run and checks its files; yields their layout."""
    rng = random.Random(settings.seed)
    for kills_left in range(settings.kills, 0, -1):
        newest, layout = run.newest(), next(layouts)
        room = (settings.iterations - (newest or 0)) // (kills_left + 1)
        target = (newest or 0) + rng.randint(0, max(0, room - ITERATIONS_PER_KILL // 2))
        with session(run, settings, layout) as (process, *_):
            run.wait(process, run.is_learning)
            run.wait(process, lambda n=target: len(run.iterations()) >= n)
            time.sleep(rng.uniform(0, 0.3))
        check_resumed(run, newest)
        check_metrics(run)
        yield layout


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
        initializer=set_environment,
        initargs=(environment(settings, numbers[-1]),),
    ) as pool:
        on_one, *others = pool.map(
            functools.partial(first_moves, settings), [1, *numbers]
        )
    return {
        number: float(np.mean(moves != on_one))
        for number, moves in zip(numbers, others, strict=True)
    }


def set_environment(variables: dict[str, str]) -> None:
    """Sets environment variables of this process."""
    os.environ.update(variables)


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
