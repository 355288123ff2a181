"""The compiled phases of an iteration: memory, traffic, collectives and kernels."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.arena import GRADED_AT_ONCE
from azjax.devices import Instruction, Program, compile_for, read_program, traffic
from azjax.games import Game
from azjax.games.core import initial_states
from azjax.networks import Network
from azjax.players import AlphaZeroPlayer
from azjax.players.batches import Division
from azjax.search import tree_bytes
from azjax.training.algorithm import Algorithm, TrainState
from azjax.training.config import TrainConfig
from azjax.training.lanes import abstract_array
from azjax.training.self_play import Trajectory

# Functions of `azjax.networks` and `azjax.search`, and the group of their kernels.
_GROUPS = {"predict": "network", "_select_path": "descent", "back_up": "backup"}


class Phase(NamedTuple):
    """A jitted function of an iteration with abstract arguments.

    name: shown to users.
    function: returned by `jax.jit`.
    arguments: `jax.ShapeDtypeStruct`s with shardings.
    of_state: the arguments that belong to the `TrainState`.
    runs: calls per iteration; 0 for an evaluation.
    steps: maximum steps of a search whose length is an argument.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    of_state: Any
    runs: int
    steps: int = 1


class Launches(NamedTuple):
    """Kernels of one simulation of self-play, by purpose.

    network: evaluation of the leaves.
    descent: outside the loop over the levels of the trees.
    level: one level of the descent.
    backup: outside the loops of the backup.
    portion: one portion of each loop of the backup.
    bookkeeping: all others.
    """

    network: int
    descent: int
    level: int
    backup: int
    portion: tuple[int, ...]
    bookkeeping: int

    @property
    def total(self) -> int:
        """Launches of a simulation with one level and one portion."""
        return (
            self.network
            + self.descent
            + self.level
            + self.backup
            + sum(self.portion)
            + self.bookkeeping
        )


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
    traffic: bytes that one call reads and writes in main memory, with the longest
        search; other loops of data-dependent length count once.
    collectives: number of collective operations by name.
    launches: of a simulation; None if nothing is searched.
    """

    name: str
    runs: int
    seconds: float
    arguments: int
    of_state: int
    outputs: int
    temporaries: int
    code: int
    traffic: int
    collectives: dict[str, int]
    launches: Launches | None

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
        steps=simulations,
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


def compile_phase(phase: Phase, mesh: jax.sharding.Mesh) -> CompiledPhase:
    """Compiles a phase for the devices of a mesh and reads the compiler's report."""
    started = time.monotonic()
    compiled = compile_for(mesh, phase.function, *phase.arguments)
    seconds = time.monotonic() - started
    program = read_program(compiled.as_text() or "")
    memory: Any = compiled.memory_analysis()
    lengths = {
        loop.name: phase.steps
        for loop in _searches(program, program.entry)
        if program.trips(loop) is None
    }
    return CompiledPhase(
        name=phase.name,
        runs=phase.runs,
        seconds=seconds,
        arguments=memory.argument_size_in_bytes,
        of_state=chip_bytes(phase.of_state),
        outputs=memory.output_size_in_bytes - memory.alias_size_in_bytes,
        temporaries=memory.temp_size_in_bytes,
        code=memory.generated_code_size_in_bytes,
        traffic=traffic(program, lengths),
        collectives=program.collectives(),
        launches=_launches(program),
    )


def chip_bytes(tree: Any) -> int:
    """Returns the bytes per chip of abstract arrays with shardings."""
    return sum(
        tree_bytes(
            jax.ShapeDtypeStruct(leaf.sharding.shard_shape(leaf.shape), leaf.dtype)
        )
        for leaf in jax.tree.leaves(tree)
    )


def _launches(program: Program) -> Launches | None:
    """Counts the kernels of a search step; None without a search. Of several loops that
    evaluate leaves it takes the longest, or the one of variable length."""
    searches = list(_searches(program, program.entry))
    if not searches:
        return None
    body = max(searches, key=lambda loop: program.trips(loop) or math.inf).body
    groups = Counter(map(_group, program.kernels(body)))
    loops = [
        (_group(loop), sum(1 for _ in program.kernels(loop.body)))
        for loop in program.loops(body)
    ]
    return Launches(
        network=groups["network"],
        descent=groups["descent"],
        level=sum(number for group, number in loops if group == "descent"),
        backup=groups["backup"],
        portion=tuple(number for group, number in loops if group == "backup"),
        bookkeeping=groups["bookkeeping"],
    )


def _searches(program: Program, computation: str) -> Iterator[Instruction]:
    """Yields the innermost loops that run the network."""
    for loop in program.loops(computation):
        inner = list(_searches(program, loop.body))
        yield from inner
        if not inner and "network" in map(_group, program.kernels(loop.body)):
            yield loop


def _group(instruction: Instruction) -> str:
    """Returns the purpose of an instruction, by the functions that created it."""
    for name in instruction.functions:
        for function in name.split("."):
            if function in _GROUPS:
                return _GROUPS[function]
    return "bookkeeping"
