"""Learns Connect Four from nothing, and shows how far from perfect play it is.

    python experiments/connect4.py                     20 minutes, with a network and
                                                       a batch that suit the machine
    python experiments/connect4.py --minutes 5         any length
    python experiments/connect4.py --help              all settings

Ctrl-C stops and saves the run; the same command goes on from there.
"""

import dataclasses
import sys
from typing import Any

import jax

from azjax import cli, train
from azjax.commands.processes import join_if_asked
from azjax.commands.train import parse_train_config, show_run
from azjax.networks import ConvTrunkConfig, DenseTrunkConfig, NetworkConfig
from azjax.search import GumbelConfig
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    fitted_to_length,
)
from azjax.training.distributed import ends_with_the_others
from azjax.training.signals import as_a_program

# Several processes find each other before JAX computes, if --distributed is given.
with cli.one_line_errors():
    ARGUMENTS = join_if_asked(sys.argv[1:], prog="connect4.py")

# A GPU or a TPU plays 16 times as many games at once, with a deeper network.
ON_CPU = jax.default_backend() == "cpu"

CONFIG = TrainConfig(
    # 6 rows of 7 cells. It is solved, so that mistakes can be counted.
    game="connect_four",
    minutes=20.0,
    # What maps a position to move probabilities and a value. Dense layers on windows of
    # 4x4 cells, which hold whole lines of four, are far faster than a tower of
    # convolutions on a CPU; on an accelerator the tower is stronger.
    network=NetworkConfig(DenseTrunkConfig(num_blocks=3, width=256, window=4))
    if ON_CPU
    else NetworkConfig(
        ConvTrunkConfig(
            num_blocks=6,
            channels=128,
            global_pooling=True,  # every third block sees the whole board
        ),
        dtype="bfloat16",  # faster than float32; parameters stay float32
    ),
    # What makes better moves of the network's. Gumbel search improves them with few
    # simulations for certain; AlphaZero's PUCT needs more.
    search=GumbelConfig(max_num_considered_actions=16),
    # How games are made. Searches are short at first, when values are noise.
    self_play=SelfPlayConfig(
        num_games=256 if ON_CPU else 4096,  # played at once, in one batch
        moves_per_chunk=32,  # in each game, between two rounds of updates
        num_simulations=(16, 32, 32, 32, 32)
        if ON_CPU
        else (16, 32, 32, 32, 64, 64, 64, 64),
        initial_position_fraction=0.25,  # games that begin with the empty board,
        short_opening_fraction=0.4,  # after 0 to 12 random moves; others: 0 to 30
        temperature_moves=8,  # drawn from the policy, so that openings differ
    ),
    # What is learnt from: the newer half of all positions, at least `min_window` and at
    # most `capacity` of them.
    replay=ReplayConfig(
        capacity=2**19 if ON_CPU else 2**21,
        window=0.5,
        min_window=2**16 if ON_CPU else 2**19,
        min_positions=2**14 if ON_CPU else 2**17,  # before the first update
    ),
    # How it is learnt: AdamW on the loss of both heads.
    learner=LearnerConfig(
        batch_size=256 if ON_CPU else 4096,
        replay_ratio=4.0,  # each position is drawn four times, on average
        learning_rate=2e-3,  # after a linear rise; a cosine takes it to 0
        td_lambda=0.8,  # values: the game's result, mixed with those of later searches
        ema_decay=0.998,  # the average of the weights plays and is evaluated
    ),
    # How the run is divided: equal parts, spread over all devices.
    num_lanes=8,
    # How strong it is meanwhile: mistakes against perfect play, and games won.
    evaluation=EvaluationConfig(
        num_evaluations=20,
        num_positions=1000 if ON_CPU else 3000,  # solved ones
        num_simulations=64,
        opponents=("random",),
        num_games=128 if ON_CPU else 512,
    ),
)


def settings(**changes: Any) -> TrainConfig:
    """Returns the settings; in a shorter run the chunks of self-play are smaller."""
    config = dataclasses.replace(CONFIG, **changes)
    return fitted_to_length(config, full_minutes=20.0 if ON_CPU else 5.0)


def main() -> None:
    """Reads options that differ, trains, and reports."""
    with as_a_program(), ends_with_the_others():
        config = parse_train_config(
            "connect_four", ARGUMENTS, prog="connect4.py", settings=settings
        )
        run = train(config)
        show_run(run)


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
