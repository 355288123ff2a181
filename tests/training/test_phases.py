import jax
import numpy as np
import pytest

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import first_network
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    make_algorithm,
)
from azjax.training.lanes import abstract_state
from azjax.training.phases import (
    CompiledPhase,
    Launches,
    chip_bytes,
    compile_phase,
    phases,
)

CONFIG = TrainConfig(
    game="tic_tac_toe",
    iterations=1,
    network=NetworkConfig(
        trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
    ),
    self_play=SelfPlayConfig(num_games=8, moves_per_chunk=4, num_simulations=(2,)),
    replay=ReplayConfig(capacity=128, min_window=104, min_positions=32),
    learner=LearnerConfig(batch_size=16),
    evaluation=EvaluationConfig(num_simulations=2),
)


@pytest.fixture(scope="module")
def mesh():
    return jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))


@pytest.fixture(scope="module")
def state_and_phases(mesh):
    game = games.make(CONFIG.game)
    network, variables = first_network(0, game, CONFIG.network)
    algorithm = make_algorithm(CONFIG, game, network, devices=list(mesh.devices))
    state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
    found = phases(CONFIG, game, network, algorithm, state=state)
    return state, list(found)


@pytest.fixture(scope="module")
def compiled(state_and_phases, mesh):
    return [compile_phase(phase, mesh) for phase in state_and_phases[1]]


def test_phases_list_the_calls_of_an_iteration(state_and_phases):
    found = {phase.name: phase.runs for phase in state_and_phases[1]}
    assert found == {
        "self-play, 2 simulations": 1,
        "insertion": 1,
        "index": 1,
        "gradient": CONFIG.updates_per_iteration,
        "update": CONFIG.updates_per_iteration,
        "evaluation, 2 simulations": 0,
    }


def test_phases_have_abstract_arguments_with_shardings(state_and_phases, mesh):
    for phase in state_and_phases[1]:
        for leaf in jax.tree.leaves(phase.arguments):
            assert isinstance(leaf, jax.ShapeDtypeStruct)
            assert leaf.sharding.mesh == mesh


def test_the_parts_of_the_state_are_measured(state_and_phases):
    state, _ = state_and_phases
    replay = sum(
        leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state.replay)
    )
    assert chip_bytes(state.replay) == replay


def test_aliased_outputs_need_no_memory(compiled, state_and_phases):
    insertion = compiled[1]
    assert insertion.of_state == chip_bytes(state_and_phases[0].replay)
    # XLA can pad its results for alignment.
    assert insertion.beside_state < insertion.of_state


def test_a_simulation_launches_kernels_of_each_group(compiled):
    launches = compiled[0].launches
    assert min(launches.network, launches.level, launches.bookkeeping) > 0
    assert launches.portion
    assert min(launches.portion) > 0
    assert [phase.launches is None for phase in compiled] == [
        *(False, True, True, True, True, False)
    ]


def test_the_total_is_the_sum_of_all_launches():
    launches = Launches(
        network=1, descent=2, level=3, backup=4, portion=(5, 6), bookkeeping=7
    )
    assert launches.total == 28


def test_one_device_has_no_collectives(compiled):
    assert [phase.collectives for phase in compiled] == [{}] * 6


def test_self_play_traffic_is_that_of_the_longest_search(
    compiled, state_and_phases, mesh
):
    shortened = compile_phase(state_and_phases[1][0]._replace(steps=1), mesh)
    assert compiled[0].traffic > shortened.traffic


def test_traffic_is_at_least_the_results(compiled):
    for phase in compiled:
        assert phase.traffic >= phase.outputs > 0


def test_a_phase_needs_memory_for_arrays_outside_the_state():
    phase = CompiledPhase(
        *("update", 1, 0.0),
        arguments=100,
        of_state=80,
        outputs=3,
        temporaries=4,
        code=1000,
        traffic=0,
        collectives={},
        launches=None,
    )
    assert phase.beside_state == 20 + 3 + 4
    # If the compiler drops unused arguments, none remain.
    assert phase._replace(arguments=50).beside_state == 7
