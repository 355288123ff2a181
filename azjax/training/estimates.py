"""Estimates of a run's speed and memory on a device, by arithmetic only."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from azjax.devices import Product, products, products_of
from azjax.games import Game
from azjax.networks import Network, Variables, predict
from azjax.training.config import TrainConfig
from azjax.training.phases import CompiledPhase, Phase

UTILIZATION = 0.4  # of the peak, typical of good programs with large batches
LAUNCH_SECONDS = 4e-6  # launch time of a GPU kernel; 3 to 5 microseconds are usual


class Work(NamedTuple):
    """Floating-point operations of matrix products per position.

    forward: matrix products of the network for one position.
    evaluations: network evaluations per position (root and simulations), none in slots
        with stored games; one number for each stage of the run.
    update: operations of an update per position of its batch.
    replay_ratio: expected number of times each position is sampled.
    """

    forward: Counter[Product]
    evaluations: tuple[float, ...]
    update: float
    replay_ratio: float

    @property
    def forward_flops(self) -> int:
        """Operations of one network evaluation."""
        return flops(self.forward)

    def flops(self, evaluations: float) -> float:
        """Returns the operations per position, given its evaluations."""
        return evaluations * self.forward_flops + self.replay_ratio * self.update


def flops(counted: Counter[Product]) -> int:
    """Returns the operations of matrix products."""
    return sum(number * product.flops for product, number in counted.items())


def work(
    config: TrainConfig,
    game: Game,
    network: Network,
    variables: Variables,
    *,
    gradient: Phase,
) -> Work:
    """Counts the operations of a run.

    Args:
        config: the run's settings.
        game: the game.
        network: its structure.
        variables: its parameters, or their shapes.
        gradient: the phase that computes gradients.
    """
    position = jax.ShapeDtypeStruct((1, *game.observation_shape), "float32")
    function: Any = gradient.function
    traced = function.trace(*gradient.arguments)
    played = config.played_slots / config.self_play.num_games
    return Work(
        forward=products(lambda *args: predict(network, *args), variables, position),
        evaluations=tuple(
            played * (1 + mean_simulations(config, simulations))
            for simulations in config.self_play.num_simulations
        ),
        update=flops(products_of(traced.jaxpr.jaxpr)) / config.learner.batch_size,
        replay_ratio=config.updates_per_iteration
        * config.learner.batch_size
        / config.chunk_positions,
    )


def mean_simulations(config: TrainConfig, num_simulations: int) -> float:
    """Returns the mean simulations of a move over full and fast searches."""
    lane_games = max(1, config.played_slots // config.num_lanes)
    full = config.self_play.full_games_of(lane_games) / lane_games
    return full * num_simulations + (1 - full) * config.self_play.fast_simulations


def positions_per_second(flops: float, peak: float, num_chips: int) -> float:
    """Returns the speed at `UTILIZATION` of the peak of all chips.

    Args:
        flops: operations per position.
        peak: peak speed of one chip (FLOP/s).
        num_chips: number of chips.
    """
    return UTILIZATION * peak * num_chips / flops


def traffic_per_position(
    config: TrainConfig, compiled: Sequence[CompiledPhase], num_chips: int
) -> float:
    """Returns the bytes that all chips read and write in main memory per position."""
    chunk_bytes = sum(phase.runs * phase.traffic for phase in compiled)
    return num_chips * chunk_bytes / config.chunk_positions


def launch_seconds(config: TrainConfig, phase: CompiledPhase) -> float:
    """Returns the minimum launch time of self-play's kernels in a chunk (seconds), with
    one level of descent per simulation; 0 if nothing is searched."""
    if phase.launches is None:
        return 0.0
    moves = config.self_play.moves_per_chunk
    steps = config.self_play.longest_search
    return moves * steps * phase.launches.total * LAUNCH_SECONDS


def chip_memory(state: int, compiled: Sequence[CompiledPhase]) -> tuple[int, str]:
    """Returns the bytes that a chip needs, and the phase that needs most.

    Args:
        state: bytes of the training state on a chip.
        compiled: the phases; the code of all of them stays in memory.
    """
    most = max(compiled, key=lambda phase: phase.beside_state)
    code = sum(phase.code for phase in compiled)
    return state + code + most.beside_state, most.name
