"""Speed and memory that a run can have on a device: arithmetic, nothing measured."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from azjax.devices import Product, products, products_of
from azjax.games import Game
from azjax.networks import Network, Variables, predict
from azjax.training.config import TrainConfig
from azjax.training.phases import CompiledPhase, Phase, search_steps

UTILIZATION = 0.4  # of the peak: what well-made programs reach with large batches
LAUNCH_SECONDS = 4e-6  # of one kernel on a GPU; 3 to 5 microseconds are usual


class Work(NamedTuple):
    """Floating-point operations of matrix products for each position of self-play.

    forward: matrix products of the network for one position.
    evaluations: of the network, of the position and in its search; one number for each
        stage of the run.
    update: operations of an update for each position of its batch.
    uses: times that a position is drawn.
    """

    forward: Counter[Product]
    evaluations: tuple[float, ...]
    update: float
    uses: float

    @property
    def forward_flops(self) -> int:
        """Operations of the network for one position."""
        return flops(self.forward)

    def flops(self, evaluations: float) -> float:
        """Operations for each position, with so many evaluations."""
        return evaluations * self.forward_flops + self.uses * self.update


def flops(counted: Counter[Product]) -> int:
    """Returns the operations of matrix products."""
    return sum(number * product.flops for product, number in counted.items())


def work(
    config: TrainConfig,
    game: Game,
    network: Network,
    variables: Variables,
    *,
    update: Phase,
) -> Work:
    """Returns the work of a run.

    Args:
        config: the run's settings.
        game: what is learnt.
        network: its structure.
        variables: its parameters, or their shapes.
        update: the phase that updates the network.
    """
    position = jax.ShapeDtypeStruct((1, *game.observation_shape), "float32")
    function: Any = update.function
    traced = function.trace(*update.arguments)
    return Work(
        forward=products(lambda *args: predict(network, *args), variables, position),
        evaluations=tuple(
            1 + mean_simulations(config, simulations)
            for simulations in config.self_play.num_simulations
        ),
        update=flops(products_of(traced.jaxpr.jaxpr)) / config.learner.batch_size,
        uses=config.updates_per_iteration
        * config.learner.batch_size
        / config.chunk_positions,
    )


def mean_simulations(config: TrainConfig, num_simulations: int) -> float:
    """Returns the simulations of a move, those of fast searches included."""
    of_lane = config.self_play.num_games // config.num_lanes
    full = config.self_play.full_games_of(of_lane) / of_lane
    return full * num_simulations + (1 - full) * config.self_play.fast_simulations


def positions_per_second(flops: float, peak: float, num_chips: int) -> float:
    """Returns the speed at `UTILIZATION` of the peak of all chips.

    Args:
        flops: operations for each position.
        peak: of one chip (FLOP/s).
        num_chips: how many there are.
    """
    return UTILIZATION * peak * num_chips / flops


def traffic_per_position(
    config: TrainConfig, compiled: Sequence[CompiledPhase], num_chips: int
) -> float:
    """Returns the bytes that all chips read and write in their main memories for each
    position."""
    of_chunk = sum(phase.runs * phase.traffic for phase in compiled)
    return num_chips * of_chunk / config.chunk_positions


def launch_seconds(config: TrainConfig, phase: CompiledPhase) -> float:
    """Returns the seconds of a chunk that launching self-play's kernels takes at least,
    with one level of descent a simulation; 0 where nothing is searched."""
    if phase.launches is None:
        return 0.0
    moves = config.self_play.moves_per_chunk
    return moves * search_steps(config) * phase.launches.total * LAUNCH_SECONDS


def chip_memory(state: int, compiled: Sequence[CompiledPhase]) -> tuple[int, str]:
    """Returns the bytes that a chip needs, and the phase that needs most.

    Args:
        state: bytes of the run's state on a chip.
        compiled: the phases; the code of all of them stays in memory.
    """
    most = max(compiled, key=lambda phase: phase.beside_state)
    code = sum(phase.code for phase in compiled)
    return state + code + most.beside_state, most.name
