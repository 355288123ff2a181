"""The compiled phases of an iteration: memory, collectives and what they execute."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.arena import GRADED_AT_ONCE
from azjax.devices import Counts, Instruction, Program, compile_program, counts
from azjax.games import Game
from azjax.games.core import initial_states
from azjax.networks import Network
from azjax.players import AlphaZeroPlayer
from azjax.players.batches import Division
from azjax.search import tree_bytes
from azjax.training.alphazero import Algorithm, TrainState
from azjax.training.config import TrainConfig
from azjax.training.lanes import abstract_array
from azjax.training.self_play import Trajectory


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
    """Yields the phases of an iteration, and the search of an evaluation.

    Args:
        config: the run's settings, without `exact_lanes`.
        game: the game.
        network: its structure.
        algorithm: the functions of the run.
        state: returned by `abstract_state`.
    """
    lanes, learner, averaged = algorithm.lanes, state.learner, state.learner.averaged
    updates = config.updates_per_iteration

    def laned(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: abstract_array(leaf, lanes.by_lane), tree)

    number = abstract_array(jnp.int32(0), lanes.replicated)
    share = abstract_array(jnp.float32(0), lanes.replicated)
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
    inserted = (number, state.replay, *_parts(config, trajectory))
    yield Phase("insertion", algorithm.insert, inserted, state.replay, 1)
    indexed = (number, number, state.replay)
    yield Phase("index", algorithm.make_index, indexed, state.replay, 1)
    index = laned(jax.eval_shape(algorithm.make_index, *indexed)[1])
    drawn = (learner, state.sampler, (state.replay, index), keys)
    of_state = (learner.variables, state.sampler, state.replay)
    yield Phase("gradient", algorithm.gradient, drawn, of_state, updates)
    gradients = laned(jax.eval_shape(algorithm.gradient, *drawn)[0])
    yield Phase(
        "update", algorithm.update, (learner, share, gradients), learner, updates
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


def _parts(config: TrainConfig, trajectory: Trajectory) -> list[Trajectory]:
    """Returns the parts of a chunk: the moves of self-play and, if they fill a part of
    the slots, those of stored games.

    Args:
        config: the run's settings.
        trajectory: of self-play; abstract leaves `[L, T, S, ...]`.
    """
    if not config.played_slots or not config.stored_slots:
        return [trajectory]
    stored = config.stored_slots // config.num_lanes

    def with_stored_slots(leaf: Any) -> jax.ShapeDtypeStruct:
        shape = (*leaf.shape[:2], stored, *leaf.shape[3:])
        return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=leaf.sharding)

    return [trajectory, jax.tree.map(with_stored_slots, trajectory)]


def compile_phase(
    phase: Phase, mesh: jax.sharding.Mesh, simulations: Sequence[int]
) -> CompiledPhase:
    """Compiles a phase for the devices of a mesh and reads the compiler's report.

    Args:
        phase: to compile.
        mesh: the devices.
        simulations: of a search whose length is an argument, in each stage of the run.
    """
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
    """Yields the innermost loops that run the network."""
    for loop in program.loops(computation):
        inner = list(_searches(program, loop.body))
        yield from inner
        if not inner and any(map(_is_of_network, program.kernels(loop.body))):
            yield loop


def _is_of_network(instruction: Instruction) -> bool:
    """Returns whether `azjax.networks.predict` created an instruction."""
    return any("predict" in name.split(".") for name in instruction.functions)
