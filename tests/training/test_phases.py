import functools

import jax
import numpy as np
import pytest
from training.tiny_runs import TINY_NETWORK
from untrained import untrained

from azjax import games
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    make_algorithm,
)
from azjax.training.lanes import abstract_state
from azjax.training.phases import CompiledPhase, chip_bytes, compile_phase, phases

CONFIG = TrainConfig(
    game="tic_tac_toe",
    iterations=1,
    network=TINY_NETWORK,
    self_play=SelfPlayConfig(num_games=8, moves_per_chunk=4, num_simulations=(2,)),
    replay=ReplayConfig(capacity=128, min_window=104, min_positions=32),
    learner=LearnerConfig(batch_size=16),
    evaluation=EvaluationConfig(num_simulations=2),
)


SELF_PLAY, INSERTION = 0, 1


@pytest.fixture(scope="module")
def mesh():
    return jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))


@pytest.fixture(scope="module")
def state_and_phases(mesh):
    game = games.make(CONFIG.game)
    network, variables = untrained(game, CONFIG.network)
    algorithm = make_algorithm(CONFIG, game, network, devices=list(mesh.devices))
    state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
    found = phases(CONFIG, game, network, algorithm, state=state)
    return state, list(found)


@pytest.fixture(scope="module")
def compiled(state_and_phases, mesh):
    """Returns a function that compiles a phase once."""
    return functools.cache(
        lambda number: compile_phase(state_and_phases[1][number], mesh, (1, 3))
    )


@pytest.fixture(scope="module")
def self_play(compiled):
    return compiled(SELF_PLAY)


def test_phases_list_the_calls_of_an_iteration(state_and_phases, mesh):
    _, found = state_and_phases
    assert {phase.name: phase.runs for phase in found} == {
        "self-play, 2 simulations": 1,
        "insertion": 1,
        "index": 1,
        "gradient": CONFIG.updates_per_iteration,
        "update": CONFIG.updates_per_iteration,
        "evaluation, 2 simulations": 0,
    }
    for phase in found:
        for leaf in jax.tree.leaves(phase.arguments):
            assert isinstance(leaf, jax.ShapeDtypeStruct)
            assert leaf.sharding.mesh == mesh


def test_aliased_outputs_need_no_memory(compiled, state_and_phases):
    insertion, replay = compiled(INSERTION), state_and_phases[0].replay
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(replay))
    assert insertion.of_state == chip_bytes(replay) == size
    # XLA can pad its results for alignment.
    assert insertion.beside_state < insertion.of_state


@pytest.mark.parametrize(
    "number",
    [
        INSERTION,
        *(pytest.param(number, marks=pytest.mark.slow) for number in (0, 2, 3, 4, 5)),
    ],
)
def test_a_phase_on_one_device_writes_its_results_without_collectives(number, compiled):
    phase = compiled(number)
    assert phase.outputs > 0
    assert phase.collectives == {}
    one, three = phase.counts
    assert one.kernels > 0
    # The length of self-play's search is an argument.
    assert (one == three) == (number != SELF_PLAY)


def test_a_phase_needs_memory_for_arrays_outside_the_state():
    phase = CompiledPhase(
        *("update", 1, 0.0),
        arguments=100,
        of_state=80,
        outputs=3,
        temporaries=4,
        code=1000,
        collectives={},
        counts=(),
    )
    assert phase.beside_state == 20 + 3 + 4
    # If the compiler drops unused arguments, none remain.
    assert phase._replace(arguments=50).beside_state == 7
