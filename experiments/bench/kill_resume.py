"""Kills a training run repeatedly and checks that no data is lost.

    python experiments/bench/kill_resume.py --kills 10 --seed 0
    python experiments/bench/kill_resume.py --devices 1 2 4 8 2x2
    python experiments/bench/kill_resume.py --game ur:2

A small run that saves after every iteration is killed with SIGKILL during
a save, during other work, or during its start. After each kill there must be a complete
checkpoint, the run must resume from the newest committed one, and the metrics must
contain each iteration once; the kept games must be readable, with no position twice and
none missing up to that checkpoint. At the end the training state must equal that of an
uninterrupted run, bit for bit. Exits with an error otherwise.

With `--devices` the run has `--exact-lanes` and goes on each time on the next number of
devices, into which XLA divides the CPU; `2x2` means two processes with two devices
each.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tyro
from rich.console import Console
from rich.table import Table
from safetensors.numpy import load_file

from azjax.data import GAMES, game_files

ITERATIONS_PER_KILL = 12
RUN_OPTIONS_TEXT = """
    --network.trunk.width 16 --network.trunk.num-blocks 1
    --network.trunk.stem-channels 8 --self-play.num-games 16
    --self-play.moves-per-chunk 4 --self-play.num-simulations 2
    --replay.capacity 4096 --replay.min-window 2048 --replay.min-positions 128
    --learner.batch-size 32 --learner.replay-ratio 2
    --evaluation.num-evaluations 2 --evaluation.num-positions 16
    --evaluation.num-simulations 2
    --evaluation.num-games 2
    --checkpoint.every-minutes 0 --checkpoint.keep 2
"""
RUN_OPTIONS = RUN_OPTIONS_TEXT.split()
IS_TIME = ("seconds", "positions_per_second", "self_play_seconds", "update_seconds")
AIMS = ("save", "work", "save", "start")
RESUMED = re.compile(r"^continuing after iteration (\d+)", re.MULTILINE)


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
    kills: number of kills.
    seed: seed of the moments of the kills.
    patience: time limit of each step, including compilation (seconds).
    directory: directory of the two runs; existing runs in it are deleted. A temporary
        directory by default.
    devices: numbers of devices; PROCESSESxDEVICES for several processes.
    """

    game: str = "connect_four"
    kills: int = 10
    seed: int = 0
    patience: float = 600.0
    directory: Path | None = None
    devices: tuple[str, ...] = ()

    def __post_init__(self):
        if self.kills < 1:
            raise ValueError(f"kills must be >= 1: {self.kills}")
        if not self.patience > 0:
            raise ValueError(f"patience must be > 0: {self.patience}")
        _ = self.layouts

    @property
    def layouts(self) -> list[Layout]:
        """Returns the parsed `devices`."""
        return [Layout.read(text) for text in self.devices]


class LossError(Exception):
    """Data was lost, or a step exceeded its time limit."""


@dataclasses.dataclass(frozen=True)
class Kill:
    """The state of the run after a kill.

    aim: the phase at which the kill aimed.
    resumed: the iteration from which the killed session had resumed; None if it started
        from the beginning or was killed earlier.
    rows: iterations in the metrics.
    is_saving: whether an unfinished checkpoint remains.
    newest: the newest committed checkpoint; None before the first.
    """

    aim: str
    resumed: int | None
    rows: int
    is_saving: bool
    newest: int | None


class TrainingRun:
    """A run of `azjax train`, as a sequence of processes.

    directory: the run directory.
    iterations: its length.
    patience: time limit of each step (seconds).
    game: game spec.
    options: additional options of `azjax train`.
    most_devices: largest number of devices of a session. XLA's results on a CPU depend
        on its number of threads, which is the number of cores or of devices, whichever
        is larger (`NPROC`).
    """

    def __init__(
        self,
        directory: Path,
        iterations: int,
        patience: float,
        *,
        game: str,
        options: Sequence[str] = RUN_OPTIONS,
        most_devices: int = 1,
    ):
        self.directory = directory
        self.game = game
        self.checkpoints = directory / "checkpoints"
        self.log = directory.with_suffix(".log")
        self.patience = patience
        self.threads = max(os.cpu_count() or 1, most_devices)
        self.command = [
            *(sys.executable, "-m", "azjax", "train", game),
            *("--preset", "cpu", "--iterations", str(iterations)),
            *("--run-dir", str(directory), *options),
        ]

    @contextlib.contextmanager
    def session(self, layout: Layout | None = None) -> Iterator[list[subprocess.Popen]]:
        """Runs the processes of a session of the run; kills those that are still
        running on exit.

        Args:
            layout: numbers of processes and CPU devices; one process with the devices
                of this machine by default.
        """
        variables, command, number = dict(os.environ), self.command, 1
        if layout is not None:
            number = layout.processes
            flag = f"--xla_force_host_platform_device_count={layout.devices}"
            variables["XLA_FLAGS"] = f"{variables.get('XLA_FLAGS', '')} {flag}".strip()
            variables |= {"JAX_PLATFORMS": "cpu", "NPROC": str(self.threads)}
        if number > 1:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{free.getsockname()[1]}"
            command = [
                *(*command, "--distributed", "--coordinator", address),
                *("--num-processes", str(number)),
            ]
        processes = []
        try:
            for index in range(number):
                own = [*command, "--process-id", str(index)] if number > 1 else command
                path = self.log if not index else self.log.with_suffix(f".{index}.log")
                with path.open("w") as log:
                    process = subprocess.Popen(
                        own, stdout=log, stderr=log, env=variables
                    )
                processes.append(process)
            yield processes
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()

    def finish(self, layout: Layout | None = None) -> None:
        """Runs the training until it ends."""
        with self.session(layout) as processes:
            for process in processes:
                try:
                    status = process.wait(self.patience)
                except subprocess.TimeoutExpired:
                    raise LossError(
                        f"no end within {self.patience:g} seconds"
                    ) from None
                if status:
                    raise LossError(
                        f"a session ended with status {status}:\n{self.output()}"
                    )

    def wait(self, process: subprocess.Popen, condition: Callable[[], object]) -> None:
        """Waits until the condition holds."""
        deadline = time.monotonic() + self.patience
        while not condition():
            if process.poll() is not None:
                raise LossError(f"a session ended unexpectedly:\n{self.output()}")
            if time.monotonic() > deadline:
                raise LossError(f"no progress within {self.patience:g} seconds")
            time.sleep(0.001)

    def output(self) -> str:
        """Returns the output of the newest session."""
        return self.log.read_text()

    def resumed(self) -> int | None:
        """Returns the iteration from which the newest session resumed, or None."""
        found = RESUMED.search(self.output())
        return int(found[1]) if found else None

    def is_learning(self) -> bool:
        """Returns whether the newest session has printed where it starts."""
        output = self.output()
        has_begun = f"\ntrain {self.game}" in f"\n{output}"
        return has_begun or RESUMED.search(output) is not None

    def newest(self) -> int | None:
        """Returns the newest committed checkpoint."""
        steps = (int(path.name) for path in self._saved() if path.name.isdigit())
        return max(steps, default=None)

    def is_saving(self) -> bool:
        """Returns whether a checkpoint is being written, or was at the kill."""
        return any("orbax-checkpoint-tmp" in path.name for path in self._saved())

    def iterations(self) -> list[int]:
        """Returns the iterations in the metrics, in file order."""
        return [row["iteration"] for row in self.rows() if row["kind"] == "iteration"]

    def metrics(self) -> list[dict]:
        """Returns the metrics without times."""
        return [
            {name: value for name, value in row.items() if name not in IS_TIME}
            for row in self.rows()
        ]

    def rows(self) -> list[dict]:
        """Returns the metrics, without an incomplete last line."""
        path = self.directory / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(True) if line[-1] == "\n"]

    def kept(self) -> dict[str, list]:
        """Returns the kept positions of self-play by column, game by game, without the
        run's id."""
        files = game_files(self.directory / GAMES)
        if not files:
            return {"game": [], "ply": [], "iteration": []}
        table = pa.concat_tables([pq.read_table(file.path) for file in files])
        order = [("game", "ascending"), ("ply", "ascending")]
        return table.drop_columns("run").sort_by(order).to_pydict()

    def digest(self) -> int:
        """Returns the checksum of the arrays of the newest checkpoint."""
        path = self.checkpoints / str(self.newest()) / "progress" / "metadata"
        return json.loads(path.read_text())["digest"]

    def weights(self) -> dict[str, np.ndarray]:
        """Returns the weights of the player."""
        return load_file(self.directory / "player" / "player.safetensors")

    def _saved(self) -> list[Path]:
        return list(self.checkpoints.iterdir()) if self.checkpoints.exists() else []


def main(settings: Settings) -> None:
    """Kills, prints a table, and exits with an error if data was lost."""
    console = Console()
    iterations = ITERATIONS_PER_KILL * settings.kills
    with contextlib.ExitStack() as stack:
        root = settings.directory
        if root is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        root.mkdir(parents=True, exist_ok=True)
        layouts = settings.layouts
        options = [*RUN_OPTIONS, *(["--exact-lanes"] if layouts else [])]
        most = max((layout.devices for layout in layouts), default=1)
        undisturbed, killed = (
            TrainingRun(
                root / name,
                iterations,
                settings.patience,
                game=settings.game,
                options=options,
                most_devices=most,
            )
            for name in ("undisturbed", "killed")
        )
        turns = itertools.cycle(layouts or [None])
        for run in (undisturbed, killed):
            shutil.rmtree(run.directory, ignore_errors=True)
        kills = []
        try:
            console.print(f"training {iterations} iterations without a kill")
            undisturbed.finish(layouts[0] if layouts else None)
            for kill in kill_often(killed, settings, turns):
                kills.append(kill)
                console.print(f"kill {len(kills)}, aimed at its {kill.aim}")
            newest = killed.newest()
            killed.finish(next(turns))
            check_resumed(killed, newest)
            check_equal(undisturbed, killed)
        except LossError as error:
            print_kills(console, kills)
            console.print(f"failed: {error}", style="bold red", markup=False)
            raise SystemExit(1) from None
    print_kills(console, kills)
    console.print(
        f"no data was lost: after {len(kills)} kills the training state is, bit for "
        "bit, that of the uninterrupted run"
    )


def kill_often(
    run: TrainingRun, settings: Settings, layouts: Iterator[Layout | None]
) -> Iterator[Kill]:
    """Kills the run and checks its files; yields the state after each kill."""
    rng = random.Random(settings.seed)
    start_seconds = 1.0
    for aim in itertools.islice(itertools.cycle(AIMS), settings.kills):
        newest = run.newest()
        with run.session(next(layouts)) as (process, *_):
            began = time.monotonic()
            if aim == "start":
                time.sleep(rng.uniform(0, start_seconds))
            else:
                run.wait(process, run.is_learning)
                start_seconds = time.monotonic() - began
                target = (newest or 0) + rng.randint(1, 4)
                run.wait(process, lambda n=target: len(run.iterations()) >= n)
                # Anywhere within an iteration, or at the start of a save.
                time.sleep(rng.uniform(0, 0.3) if aim == "work" else 0)
            if aim == "save":
                run.wait(process, run.is_saving)
                time.sleep(rng.uniform(0, 0.05))
            if process.poll() is not None:
                raise LossError(f"a session ended unexpectedly:\n{run.output()}")
        if run.is_learning():
            check_resumed(run, newest)
        check_metrics(run)
        check_kept(run)
        yield Kill(
            aim, run.resumed(), len(run.iterations()), run.is_saving(), run.newest()
        )


def check_resumed(run: TrainingRun, newest: int | None) -> None:
    """Checks that the newest session resumed from the checkpoint `newest`."""
    if "damaged" in run.output():
        raise LossError(f"a checkpoint was damaged:\n{run.output()}")
    if run.resumed() != newest:
        raise LossError(f"checkpoint {newest} was there, but:\n{run.output()}")


def check_metrics(run: TrainingRun) -> None:
    """Checks that the metrics have each iteration once, up to the newest checkpoint."""
    found = run.iterations()
    if found != list(range(1, len(found) + 1)):
        raise LossError(f"iterations in the metrics: {found}")
    if len(found) < (run.newest() or 0):
        raise LossError(f"checkpoint {run.newest()}, but {len(found)} iterations")


def check_kept(run: TrainingRun) -> None:
    """Checks that the files of games can be read, have no position twice, and have all
    iterations up to the newest checkpoint."""
    kept = run.kept()
    positions = set(zip(kept["game"], kept["ply"], strict=True))
    if len(positions) < len(kept["game"]):
        twice = len(kept["game"]) - len(positions)
        raise LossError(f"{twice} kept positions are there twice")
    missing = set(range(1, (run.newest() or 0) + 1)) - set(kept["iteration"])
    if missing:
        raise LossError(f"no games are kept of iterations {sorted(missing)}")


def check_equal(a: TrainingRun, b: TrainingRun) -> None:
    """Checks that two runs have equal results."""
    check_metrics(b)
    for what in ("iterations", "newest", "digest"):
        if getattr(a, what)() != getattr(b, what)():
            raise LossError(f"{what}: {getattr(a, what)()} and {getattr(b, what)()}")
    if a.metrics() != b.metrics():
        raise LossError("the metrics differ")
    check_kept(b)
    if a.kept() != b.kept():
        raise LossError("the kept games differ")
    ours, theirs = a.weights(), b.weights()
    if ours.keys() != theirs.keys() or any(
        ours[name].tobytes() != theirs[name].tobytes() for name in ours
    ):
        raise LossError("the players' weights differ")


def print_kills(console: Console, kills: list[Kill]) -> None:
    """Prints the state after each kill."""
    table = Table(
        "kill",
        "aimed at",
        "went on after",
        "iterations done",
        "unfinished save left",
        "newest checkpoint",
        box=None,
    )
    for number, kill in enumerate(kills, start=1):
        table.add_row(
            str(number),
            kill.aim,
            "-" if kill.resumed is None else str(kill.resumed),
            str(kill.rows),
            "yes" if kill.is_saving else "no",
            "-" if kill.newest is None else str(kill.newest),
        )
    console.print(table)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
