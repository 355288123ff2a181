"""Small runs of AlphaZero, which share their programs; see `shared_programs`."""

import json
import os
import signal

import jax
import numpy as np
import pyarrow.parquet as pq

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    train,
)
from azjax.training.game_reader import GameReader
from azjax.training.lanes import spread_lanes

TINY_NETWORK = NetworkConfig(
    trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
)


def config(directory, **changes) -> TrainConfig:
    """Returns the settings of a run of 6 iterations, of 32 positions each."""
    settings = {
        "game": "tic_tac_toe",
        "iterations": 6,
        "num_lanes": 2,
        "run_dir": str(directory),
        "network": TINY_NETWORK,
        "self_play": SelfPlayConfig(
            num_games=8, moves_per_chunk=4, num_simulations=(2,), temperature_moves=2
        ),
        "replay": ReplayConfig(capacity=128, min_window=104, min_positions=64),
        "learner": LearnerConfig(batch_size=16, replay_ratio=1.0),
        "evaluation": EvaluationConfig(
            num_evaluations=2, num_positions=32, num_simulations=2, num_games=4
        ),
        "checkpoint": CheckpointConfig(every_minutes=0.0),
    }
    return TrainConfig(**settings | changes)


def train_on_stored_games(directory, game, iterations, *names):
    """Trains a run, and another one on its games.

    Returns columns of the first run's games, game by game and move by move, and for
    each row but the last whether the next move follows.
    """
    first = config(directory / "first", game=game, iterations=iterations)
    train(first)
    rows = pq.read_table(first.directory / "games").to_pydict()
    order = np.lexsort((rows["ply"], rows["game"]))
    number, ply, *columns = (
        np.array(rows[name])[order] for name in ("game", "ply", *names)
    )
    second = config(
        directory / "second",
        game=game,
        iterations=1,
        learn_from=(str(first.directory),),
    )
    assert train(second).finished
    return *columns, (number[1:] == number[:-1]) & (np.diff(ply) == 1)


def game_reader(source, **changes) -> GameReader:
    """Returns the reader of a run that learns from the games of a directory."""
    settings = config("unused", learn_from=(str(source),), **changes)
    lanes = spread_lanes(
        settings.num_lanes, one_by_one=False, devices=jax.devices()[:1]
    )
    return GameReader(settings, games.make(settings.game), lanes)


def stop_after(iteration, number=signal.SIGTERM):
    """Returns an `on_iteration` that sends a signal to this process."""

    def on_iteration(row):
        if row["iteration"] == iteration:
            os.kill(os.getpid(), number)

    return on_iteration


def metrics(run):
    lines = (run.directory / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def counted(run):
    """Returns the metrics without the measured times."""
    return [
        {
            name: value
            for name, value in row.items()
            if "seconds" not in name and name != "positions_per_second"
        }
        for row in metrics(run)
    ]


def assert_same_player(a, b):
    jax.tree.map(np.testing.assert_array_equal, a.player.variables, b.player.variables)
