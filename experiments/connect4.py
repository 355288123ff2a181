"""Learns Connect Four from scratch and measures its mistakes against perfect play.

    python experiments/connect4.py                     20 minutes, with a network and
                                                       a batch that suit the machine
    python experiments/connect4.py --minutes 5         any length
    python experiments/connect4.py --help              all settings

Ctrl-C stops and saves the run; the same command continues it.
"""

import dataclasses
import sys
from typing import Any

import jax

from azjax import cli, train
from azjax.commands.train import join_if_asked, parse_train_config, show_run
from azjax.networks import ConvTrunkConfig, DenseTrunkConfig, NetworkConfig
from azjax.program import quiet_libraries
from azjax.search import GumbelConfig
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    fitted_to_length,
)
from azjax.training.run.processes import exit_if_process_lost
from azjax.training.run.signals import exit_on_second_signal

quiet_libraries()  # without a TPU, no messages about it

# With --distributed, joins the other processes before JAX computes.
with cli.one_line_errors():
    ARGUMENTS = join_if_asked(sys.argv[1:], prog="connect4.py")

# A GPU or TPU plays 16 times as many games at once, with a deeper network.
ON_CPU = jax.default_backend() == "cpu"

CONFIG = TrainConfig(
    # 6 rows of 7 cells. Solved, so that mistakes can be counted.
    game="connect_four",
    minutes=20.0,
    # Maps a position to policy logits and to win, draw and loss logits. Dense layers on
    # windows of 4x4 cells, which contain whole lines of four, are far faster on a CPU
    # than a convolutional tower; on an accelerator the tower is stronger. They also get
    # the cells that complete a line of four, two planes computed from the stones (not
    # measured with a tower).
    network=NetworkConfig(
        DenseTrunkConfig(num_blocks=3, width=256, window=4), line_length=4
    )
    if ON_CPU
    else NetworkConfig(
        ConvTrunkConfig(
            num_blocks=6,
            channels=128,
            global_pooling=True,  # every third block sees the whole board
        ),
        dtype="bfloat16",  # faster than float32; parameters stay float32
    ),
    # Improves the network's policy. Gumbel search does so with few simulations;
    # AlphaZero's PUCT needs more.
    search=GumbelConfig(max_num_considered_actions=16),
    # Plays games. Searches are short at first, when values are noise.
    self_play=SelfPlayConfig(
        num_games=256 if ON_CPU else 4096,  # played at once, in one batch
        moves_per_chunk=32,  # in each game, per iteration
        num_simulations=(16, 32, 32, 32, 32)
        if ON_CPU
        else (16, 32, 32, 32, 64, 64, 64, 64),
        initial_position_fraction=0.25,  # of the games start from the empty board
        short_opening_fraction=0.4,  # after 0 to 12 random moves; the others: 0 to 30
        temperature_moves=8,  # sampled from the policy, so that openings differ
    ),
    # Stores positions. Batches come from the newest `window` fraction of all positions,
    # at least `min_window` and at most `capacity` of them.
    replay=ReplayConfig(
        capacity=2**19 if ON_CPU else 2**21,
        window=0.5,
        min_window=2**16 if ON_CPU else 2**19,
        min_positions=2**14 if ON_CPU else 2**17,  # before the first update
    ),
    # Updates the network: AdamW on the losses of both heads.
    learner=LearnerConfig(
        batch_size=256 if ON_CPU else 4096,
        replay_ratio=4.0,  # each position is sampled four times, on average
        learning_rate=2e-3,  # peak, after a linear warmup; a cosine decays it to 0
        td_lambda=0.8,  # lambda-return over later search values and the game's result
        ema_decay=0.998,  # of the averaged weights, which play and are evaluated
    ),
    # Divides games, replay and batches into equal parts, sharded over the devices.
    num_lanes=8,
    # Measures strength during the run: mistakes against perfect play, and match scores.
    evaluation=EvaluationConfig(
        num_evaluations=20,
        num_positions=1000 if ON_CPU else 3000,  # solved ones
        num_simulations=64,
        opponents=("random",),
        num_games=128 if ON_CPU else 512,
    ),
)


def settings(**changes: Any) -> TrainConfig:
    """Returns the settings; shorter runs have smaller chunks of self-play."""
    config = dataclasses.replace(CONFIG, **changes)
    return fitted_to_length(config, full_minutes=20.0 if ON_CPU else 5.0)


def main() -> None:
    """Reads options, trains, and prints the results."""
    with exit_on_second_signal(), exit_if_process_lost():
        config = parse_train_config(
            "connect_four", ARGUMENTS, prog="connect4.py", settings=settings
        )
        run = train(config)
        show_run(run)


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
