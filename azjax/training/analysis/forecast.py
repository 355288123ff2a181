"""Whether a run fits into a device, and its estimated speed there, without executing
it: the compiled phases of an iteration, their memory and what they execute."""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax import games as game_register
from azjax.arena import GRADED_AT_ONCE
from azjax.devices import (
    Chip,
    Counts,
    Instruction,
    Product,
    Program,
    chip_of,
    compile_program,
    counts,
    estimates,
    products,
    products_of,
    topology_mesh,
    tracing_for,
)
from azjax.games import Game
from azjax.games.core import initial_states
from azjax.networks import CustomModules, Network, Variables, predict
from azjax.players import AlphaZeroPlayer
from azjax.players.batches import Division
from azjax.search import tree_bytes
from azjax.training.alphazero import Algorithm, TrainState, make_algorithm
from azjax.training.config import TrainConfig
from azjax.training.lanes import abstract_array, abstract_state
from azjax.training.memory import (
    advice,
    available_bytes,
    check_fits,
    required_memory,
)
from azjax.training.territory import training_network


class Phase(NamedTuple):
    """A jitted function of an iteration with abstract arguments.

    name: shown to users.
    function: returned by `jax.jit`.
    arguments: `jax.ShapeDtypeStruct`s with shardings.
    of_state: the arguments that belong to the `TrainState`.
    runs: calls per iteration; 0 for an evaluation.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    of_state: Any
    runs: int


class CompiledPhase(NamedTuple):
    """The compiler's report on a phase; bytes are per chip.

    name: of the phase.
    runs: calls per iteration.
    seconds: time of tracing and compiling.
    arguments: bytes, the state included.
    of_state: bytes of the arguments that belong to the state.
    outputs: bytes of results that do not alias an argument.
    temporaries: bytes.
    code: bytes.
    collectives: number of collective operations by name.
    counts: of one call in each stage of the run, with its simulations; other loops of
        data-dependent length count once.
    """

    name: str
    runs: int
    seconds: float
    arguments: int
    of_state: int
    outputs: int
    temporaries: int
    code: int
    collectives: dict[str, int]
    counts: tuple[Counts, ...]

    @property
    def beside_state(self) -> int:
        """Bytes needed besides the training state, without code."""
        return max(0, self.arguments - self.of_state) + self.outputs + self.temporaries


def phases(
    config: TrainConfig,
    game: Game,
    network: Network,
    algorithm: Algorithm,
    *,
    state: TrainState,
) -> Iterator[Phase]:
    """Yields the phases of an iteration, and the search of an evaluation, of a run
    without `exact_lanes`, whose state is returned by `abstract_state`."""
    lanes, learner, averaged = algorithm.lanes, state.learner, state.learner.averaged
    updates = config.updates_per_iteration

    def laned(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: abstract_array(leaf, lanes.by_lane), tree)

    number = abstract_array(jnp.int32(0), lanes.replicated)
    progress = abstract_array(jnp.float32(0), lanes.replicated)
    keys, _ = laned(jax.eval_shape(algorithm.make_keys, state.rng_key, number))
    played = (averaged, number, state.games, keys)
    simulations = config.self_play.longest_search
    yield Phase(
        f"self-play, {simulations} simulations",
        algorithm.self_play,
        played,
        (averaged, state.games),
        1,
    )
    trajectory = laned(jax.eval_shape(algorithm.self_play, *played)[1])
    chunks = [trajectory]
    if config.played_slots and config.stored_slots:
        # The moves of stored games fill the other slots: leaves `[L, T, S, ...]`.
        stored = config.stored_slots // config.num_lanes

        def with_stored_slots(leaf: Any) -> jax.ShapeDtypeStruct:
            shape = (*leaf.shape[:2], stored, *leaf.shape[3:])
            return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=leaf.sharding)

        chunks.append(jax.tree.map(with_stored_slots, trajectory))
    inserted = (number, state.replay, *chunks)
    yield Phase("insertion", algorithm.insert, inserted, state.replay, 1)
    indexed = (number, number, state.replay)
    yield Phase("index", algorithm.make_index, indexed, state.replay, 1)
    index = laned(jax.eval_shape(algorithm.make_index, *indexed)[1])
    drawn = (learner, state.sampler, (state.replay, index), keys)
    of_state = (learner.variables, state.sampler, state.replay)
    yield Phase("gradient", algorithm.gradient, drawn, of_state, updates)
    gradients = laned(jax.eval_shape(algorithm.gradient, *drawn)[0])
    yield Phase(
        "update", algorithm.update, (learner, progress, gradients), learner, updates
    )
    size = Division(lanes.number).padded(GRADED_AT_ONCE)
    positions = laned(jax.eval_shape(lambda: initial_states(game, size)))
    simulations = config.evaluation.num_simulations
    player = AlphaZeroPlayer(game, config.search, simulations, network, averaged)
    yield Phase(
        f"evaluation, {simulations} simulations",
        lanes.jit_network(AlphaZeroPlayer.choose, num_replicated=1),
        (player, keys, positions),
        averaged,
        0,
    )


def compile_phase(
    phase: Phase, mesh: jax.sharding.Mesh, simulations: Sequence[int]
) -> CompiledPhase:
    """Compiles a phase for the devices of a mesh and reads the compiler's report.
    `simulations` are those of a search whose length is an argument, by stage."""
    started = time.monotonic()
    compiled, program = compile_program(mesh, phase.function, *phase.arguments)
    seconds = time.monotonic() - started
    memory: Any = compiled.memory_analysis()
    searches = list(_searches(program, program.entry))
    return CompiledPhase(
        name=phase.name,
        runs=phase.runs,
        seconds=seconds,
        arguments=memory.argument_size_in_bytes,
        of_state=chip_bytes(phase.of_state),
        outputs=memory.output_size_in_bytes - memory.alias_size_in_bytes,
        temporaries=memory.temp_size_in_bytes,
        code=memory.generated_code_size_in_bytes,
        collectives=program.collectives(),
        counts=tuple(
            counts(program, {loop.name: number for loop in searches})
            for number in simulations
        ),
    )


def chip_bytes(tree: Any) -> int:
    """Returns the bytes per chip of abstract arrays with shardings."""
    return sum(
        tree_bytes(
            jax.ShapeDtypeStruct(leaf.sharding.shard_shape(leaf.shape), leaf.dtype)
        )
        for leaf in jax.tree.leaves(tree)
    )


def _searches(program: Program, computation: str) -> Iterator[Instruction]:
    """Yields the innermost loops that run the network, `azjax.networks.predict`."""
    for loop in program.loops(computation):
        inner = list(_searches(program, loop.body))
        yield from inner
        functions = (one.functions for one in program.kernels(loop.body))
        names = (name for found in functions for name in found)
        if not inner and any("predict" in name.split(".") for name in names):
            yield loop


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
    """Counts the operations of a run, given the phase that computes gradients; of the
    variables only the shapes are used."""
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
        """Raises a ValueError if the run needs more memory than a chip has."""
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
    modules: CustomModules | None = None,
    enter: Callable[[str], None] = lambda phase: None,
) -> Forecast:
    """Compiles the phases of a run for a device, which need not be present.

    Args:
        config: the run's settings.
        device: name, as `azjax.devices.topology_mesh` takes it; None: the available
            devices.
        modules: custom network modules.
        enter: called with the name of each phase before it is compiled.
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
        network, variables, modules = training_network(config, game, modules)
        algorithm = make_algorithm(
            config,
            game,
            network,
            modules=modules,
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
            modules=modules,
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
