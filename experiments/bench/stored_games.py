"""Measures what keeping the games of self-play costs, and how fast they are queried.

    python experiments/bench/stored_games.py speed --minutes 20 --repeats 3
    python experiments/bench/stored_games.py bytes
    python experiments/bench/stored_games.py queries --positions 2000000

`speed` trains with and without kept games, alternating, and compares the positions per
second and the CPU seconds of whole runs, which other programs on the machine disturb
less. `bytes` plays a few chunks of every game with a small untrained network and
divides the size of the files by the positions. `queries` times the ready queries of
`azjax data` over synthetic Connect Four games.
"""

import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from azjax import games, training
from azjax.data import GAMES, GameFileWriter, Rows, game_files, state_bytes
from azjax.data.database import QUERIES, opened
from azjax.data.rows import initial_state
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.training.run.metrics import METRICS_FILE, read_metrics

CHUNK = 65_536  # synthetic positions that are added at once
MOVES = 32  # of a synthetic game


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    what: what to measure.
    game: game spec of `speed`.
    minutes: length of each run of `speed`.
    iterations: length in iterations instead.
    repeats: pairs of runs of `speed`.
    games: game specs of `bytes`; all games by default.
    chunks: iterations of each game of `bytes`.
    positions: number of positions of `queries`.
    """

    what: Annotated[Literal["speed", "bytes", "queries"], tyro.conf.Positional]
    game: str = "connect_four"
    minutes: float = 20.0
    iterations: int | None = None
    repeats: int = 3
    games: tuple[str, ...] = ()
    chunks: int = 4
    positions: int = 2_000_000


def main(settings: Settings) -> None:
    """Measures and prints a table."""
    measure = {"speed": speed, "bytes": size, "queries": queries}[settings.what]
    with tempfile.TemporaryDirectory() as directory:
        Console().print(measure(settings, Path(directory)))


def speed(settings: Settings, directory: Path) -> Table:
    """Compares speed and CPU time with and without kept games."""
    table = Table("run", "games", "positions/s", "CPU s", box=None)
    speeds: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    for repeat in range(settings.repeats):
        for keeps in (True, False) if repeat % 2 else (False, True):
            run_dir = directory / f"{repeat}-{keeps}"
            length = {"minutes": settings.minutes}
            if settings.iterations is not None:
                length = {"iterations": settings.iterations}
            config = training.preset(
                "auto", settings.game, run_dir=str(run_dir), **length
            )
            data = training.DataConfig(keep_games=keeps)
            begin = time.process_time()
            if not training.train(dataclasses.replace(config, data=data)).finished:
                raise SystemExit("stopped by a signal")
            costs[keeps].append(time.process_time() - begin)
            rate = _positions_per_second(run_dir)
            speeds[keeps].append(rate)
            row = ("kept" if keeps else "-", f"{rate:,.0f}", f"{costs[keeps][-1]:.1f}")
            table.add_row(str(repeat), *row)
    ratios = [np.mean(each[True]) / np.mean(each[False]) for each in (speeds, costs)]
    table.add_row("ratio of means", "", *(f"{ratio:.4f}" for ratio in ratios))
    return table


def _positions_per_second(run_dir: Path) -> float:
    """Returns the speed of the iterations without evaluations and without the first
    one, which compiles."""
    rows = read_metrics(run_dir / METRICS_FILE)
    rows = [row for row in rows if row["kind"] == "iteration"]
    compiles = {rows[0]["iteration"]}
    first_update = next((row for row in rows if row["update_seconds"]), rows[0])
    compiles.add(first_update["iteration"])
    rest = [row for row in rows if row["iteration"] not in compiles]
    return len(rest) / sum(1 / row["positions_per_second"] for row in rest)


def size(settings: Settings, directory: Path) -> Table:
    """Measures the bytes of a position of each game."""
    table = Table("game", "packed state", "bytes/position", "positions", box=None)
    for number, name in enumerate(settings.games or games.available()):
        run_dir = directory / str(number)
        if not training.train(_small_run(name, run_dir, settings.chunks)).finished:
            raise SystemExit("stopped by a signal")
        files = game_files(run_dir / GAMES)
        stored = sum(len(file.path.read_bytes()) for file in files)
        positions = settings.chunks * 64 * 16
        table.add_row(
            name,
            str(state_bytes(games.make(name))),
            f"{stored / positions:.1f}",
            f"{positions:,}",
        )
    return table


def _small_run(name: str, run_dir: Path, chunks: int) -> training.TrainConfig:
    game = games.make(name)
    window = 64 * (game.max_moves + 16)
    trunk = DenseTrunkConfig(width=16, num_blocks=1, stem_channels=4)
    return training.TrainConfig(
        game=name,
        iterations=chunks,
        run_dir=str(run_dir),
        network=NetworkConfig(trunk=trunk),
        self_play=training.SelfPlayConfig(
            num_games=64, moves_per_chunk=16, num_simulations=(16,)
        ),
        replay=training.ReplayConfig(
            capacity=max(2 * window, 2048), min_window=window, min_positions=0
        ),
        learner=training.LearnerConfig(batch_size=64, replay_ratio=0.1),
        evaluation=training.EvaluationConfig(
            num_evaluations=1, num_positions=8, num_simulations=2, opponents=()
        ),
        checkpoint=training.CheckpointConfig(every_minutes=60.0),
    )


def queries(settings: Settings, directory: Path) -> Table:
    """Times the ready queries, each with the opening of the files."""
    game = games.make("connect_four")
    with GameFileWriter(directory, game, run="synthetic", seed=0) as writer:
        for iteration in range(1, 1 + -(-settings.positions // CHUNK)):
            writer.add(iteration, lambda number=iteration: _synthetic(number))
        writer.flush()
    table = Table("query", "seconds", "rows", box=None)
    for name, query in QUERIES.items():
        began = time.monotonic()
        with opened(directory, game) as database:
            rows = database.query(query.sql).rows
        table.add_row(name, f"{time.monotonic() - began:.2f}", str(len(rows)))
    return table


def _synthetic(iteration: int) -> Rows:
    """Returns games of random content, of which a quarter start from the initial
    position, and in which some positions repeat."""
    rng = np.random.default_rng(iteration)
    ply = np.arange(CHUNK, dtype=np.int32) % MOVES
    number = np.arange(CHUNK) // MOVES
    initial = np.frombuffer(initial_state(games.make("connect_four")), np.uint8)
    state = np.tile(initial, (CHUNK, 1))
    # As many different positions as after `ply` moves, at most.
    kinds = rng.integers(0, 7 ** np.minimum(ply, 20).astype(np.int64))
    words = kinds.view(np.uint8).reshape(CHUNK, 8)
    state[:, :8] = np.where(ply[:, None] > 0, words, state[:, :8])
    is_other = (number % 4 > 0) & (ply == 0)
    state[is_other, :4] = rng.integers(0, 255, (is_other.sum(), 4))
    policy = rng.dirichlet(np.ones(7), CHUNK).astype(np.float16)
    value = rng.uniform(-1, 1, CHUNK).astype(np.float32)
    return Rows(
        game=(iteration * CHUNK + number).astype(np.int64),
        ply=ply,
        player=(ply % 2).astype(np.int8),
        move=rng.integers(0, 7, CHUNK),
        state=state,
        policy_counts=np.full(CHUNK, 7),
        policy_actions=np.tile(np.arange(7), CHUNK),
        policy_probabilities=policy.ravel(),
        policy_values=np.repeat(value, 7),
        value=value,
        draw_probability=np.abs(value),
        regret=np.maximum(value, 0),
        reward=rng.integers(-1, 2, CHUNK) * (ply == MOVES - 1).astype(np.float32),
        terminated=ply == MOVES - 1,
        simulations=np.full(CHUNK, 32, np.int32),
    )


if __name__ == "__main__":
    main(tyro.cli(Settings))
