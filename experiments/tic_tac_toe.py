"""Learns tic-tac-toe from scratch to perfect play, in two minutes on a laptop.

    python experiments/tic_tac_toe.py
    python experiments/tic_tac_toe.py --help           all settings

The positions are solved by exhaustive search; the network is graded on all of them
during the run.
"""

import dataclasses
import functools

from azjax import cli, train
from azjax.commands.train import parse_train_config, show_run
from azjax.devices import use_all_cores
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.program import quiet_libraries
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
)
from azjax.training.run.signals import exit_on_second_signal

CONFIG = TrainConfig(
    game="tic_tac_toe",
    minutes=2.0,
    network=NetworkConfig(
        trunk=DenseTrunkConfig(width=128, stem_channels=64, window=3)
    ),
    self_play=SelfPlayConfig(
        moves_per_chunk=8,
        num_simulations=(32,),
        short_opening_moves=4,
        long_opening_moves=7,
        temperature_moves=9,
    ),
    replay=ReplayConfig(capacity=65_536, min_window=16_384, min_positions=4_096),
    learner=LearnerConfig(batch_size=256, replay_ratio=8.0),
    evaluation=EvaluationConfig(
        num_evaluations=8, num_positions=4_520, num_simulations=32
    ),
)


def main() -> None:
    """Reads options, trains, and prints the results."""
    config = parse_train_config(
        "tic_tac_toe",
        prog="tic_tac_toe.py",
        settings=functools.partial(dataclasses.replace, CONFIG),
    )
    with exit_on_second_signal():
        run = train(config)
    show_run(run)


if __name__ == "__main__":
    quiet_libraries()  # without a TPU, no messages about it
    use_all_cores()
    with cli.one_line_errors():
        main()
