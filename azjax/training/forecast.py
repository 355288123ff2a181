"""Whether a run fits into a device, and its estimated speed there, without executing
it."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from azjax import games as game_register
from azjax.devices import (
    Chip,
    Product,
    chip_of,
    estimates,
    products,
    products_of,
    topology_mesh,
    tracing_for,
)
from azjax.games import Game
from azjax.networks import Network, Parts, Variables, predict
from azjax.training.alphazero import make_algorithm
from azjax.training.config import TrainConfig
from azjax.training.lanes import abstract_state
from azjax.training.memory import (
    advice,
    available_bytes,
    check_fits,
    required_memory,
)
from azjax.training.phases import (
    CompiledPhase,
    Phase,
    chip_bytes,
    compile_phase,
    phases,
)
from azjax.training.territory import training_network


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


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Forecast of a run on given devices.

    Attributes:
        config: the run's settings.
        device: name of the devices.
        chip: their type; None if it is not in the catalog.
        num_chips: number of devices.
        state: bytes of each part of the training state on a chip, by name.
        trees: approximate bytes of self-play's trees on a chip.
        phases: the compiled phases.
        usable: bytes of a chip that JAX can allocate; None if unknown.
        work: floating-point operations per position.
        to_lower: settings that lower the memory needed.
    """

    config: TrainConfig
    device: str
    chip: Chip | None
    num_chips: int
    state: dict[str, int]
    trees: int
    phases: tuple[CompiledPhase, ...]
    usable: int | None
    work: Work
    to_lower: str

    @property
    def needed(self) -> tuple[int, str]:
        """Bytes that a chip needs, and the phase that needs most."""
        most = max(self.phases, key=lambda phase: phase.beside_state)
        # The code of all phases stays in memory.
        code = sum(phase.code for phase in self.phases)
        return sum(self.state.values()) + code + most.beside_state, most.name

    @property
    def peak(self) -> float | None:
        """Peak speed of a chip for the network's dtype (FLOP/s); None if unknown."""
        return self.chip and self.chip.peak(self.config.network.dtype)

    def seconds(self, stage: int) -> dict[str, float] | None:
        """Estimates the time of an iteration in a stage of the run by its parts
        (seconds); None if the chip is unknown, or its clock.

        Every part leaves something out (see `azjax.devices.estimates`), and a product
        runs at the peak, so that a run is seldom faster.
        """
        if self.chip is None or self.peak is None:
            return None
        parts = {}
        for phase in self.phases:
            if phase.runs:
                seconds = phase.counts[stage].seconds(self.chip)
                if seconds is None:
                    return None
                parts[phase.name.partition(",")[0]] = phase.runs * seconds
        if self.chip.gpu is not None:
            self_play = self.config.self_play
            simulations = self_play.moves_per_chunk * self_play.num_simulations[stage]
            flops = self.work.flops(self.work.evaluations[stage])
            chunk_flops = self.config.chunk_positions * flops / self.num_chips
            parts["other work of simulations"] = simulations * estimates.SIMULATION
            parts["products at the peak"] = chunk_flops / self.peak
        return parts

    @property
    def speeds(self) -> tuple[float, ...]:
        """Estimated positions per second in each stage of the run; empty if unknown."""
        stages = range(len(self.config.self_play.num_simulations))
        found = [seconds for stage in stages if (seconds := self.seconds(stage))]
        return tuple(self.config.chunk_positions / sum(one.values()) for one in found)

    def check(self) -> None:
        """Checks that the run fits.

        Raises:
            ValueError: it needs more memory than a chip has.
        """
        needed, phase = self.needed
        if self.usable is not None and needed > self.usable:
            raise ValueError(
                f"{phase} needs {needed / 2**30:,.2f} GiB of each chip, and JAX can "
                f"use {self.usable / 2**30:,.2f} GiB of {self.device}: {self.to_lower}"
            )

    def to_json(self) -> dict[str, Any]:
        """Returns the forecast as JSON values."""
        needed, phase = self.needed
        return {
            "game": self.config.game,
            "device": self.device,
            "chips": self.num_chips,
            "dtype": self.config.network.dtype,
            "peak_flops": self.peak,
            "clock": self.chip and self.chip.clock,
            "usable_bytes": self.usable,
            "needed_bytes": needed,
            "needed_in": phase,
            "fits": self.usable is None or needed <= self.usable,
            "state_bytes": self.state,
            "tree_bytes": self.trees,
            "phases": [
                phase._asdict() | {"counts": [one._asdict() for one in phase.counts]}
                for phase in self.phases
            ],
            "simulations": self.config.self_play.num_simulations,
            "network_flops": self.work.forward_flops,
            "evaluations": self.work.evaluations,
            "update_flops": self.work.update,
            "replay_ratio": self.work.replay_ratio,
            "position_flops": [
                self.work.flops(number) for number in self.work.evaluations
            ],
            "positions_per_second": self.speeds,
        }


def forecast(
    config: TrainConfig,
    device: str | None = None,
    *,
    parts: Parts | None = None,
    enter: Callable[[str], None] = lambda phase: None,
) -> Forecast:
    """Compiles the phases of a run for a device, which need not be present.

    Args:
        config: the run's settings.
        device: name, as `azjax.devices.topology_mesh` takes it; None: the available
            devices.
        parts: custom network modules.
        enter: called with the name of each phase before it is compiled.

    Raises:
        ValueError: the device is unknown, its compiler is not installed, or the run
            does not fit.
    """
    # Exact lanes would run the same programs with smaller batches.
    config = dataclasses.replace(config, exact_lanes=False)
    devices = jax.devices() if device is None else [*topology_mesh(device).devices]
    # Covers all tracing, because JAX caches traces.
    with tracing_for(devices[0].platform):
        chip = chip_of(devices[0])
        usable = available_bytes() if device is None else chip and chip.usable_memory
        name = device or devices[0].device_kind
        game = game_register.make(config.game)
        network, variables, parts = training_network(config, game, parts)
        algorithm = make_algorithm(
            config,
            game,
            network,
            parts=parts,
            devices=None if device is None else devices,
        )
        mesh = algorithm.lanes.mesh
        needed = required_memory(
            config,
            game,
            network,
            variables,
            lambda: algorithm.init(variables),
            num_devices=mesh.size,
            is_cpu=devices[0].platform == "cpu",
            parts=parts,
        )
        check_fits(config, needed, usable)
        to_lower = advice(config, needed)
        state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
        compiled, gradient = [], None
        for phase in phases(config, game, network, algorithm, state=state):
            enter(phase.name)
            try:
                simulations = config.self_play.num_simulations
                compiled.append(compile_phase(phase, mesh, simulations))
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                raise ValueError(
                    f"{phase.name} does not fit into the memory of {name}: {to_lower}"
                ) from None
            gradient = phase if phase.name == "gradient" else gradient
        if gradient is None:
            raise RuntimeError("there is no gradient to compile")
        return Forecast(
            config=config,
            device=name,
            chip=chip,
            num_chips=mesh.size,
            state={
                "replay": chip_bytes(state.replay),
                "network and optimizer": chip_bytes(state.learner),
                "games and sampler": chip_bytes((state.games, state.sampler)),
            },
            trees=sum(
                part.size
                for part in needed
                if "self_play.num_simulations" in part.settings
            ),
            phases=tuple(compiled),
            usable=usable,
            work=work(config, game, network, variables, gradient=gradient),
            to_lower=to_lower,
        )
