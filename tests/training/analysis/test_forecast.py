import dataclasses
import functools
from collections import Counter

import jax
import numpy as np
import pytest
from training.tiny_runs import config
from untrained import untrained, untrained_shapes

from azjax import games
from azjax.devices import CHIPS, Counts, Product, estimates
from azjax.training import SelfPlayConfig, make_algorithm, preset
from azjax.training.analysis.forecast import (
    CompiledPhase,
    Forecast,
    Phase,
    Work,
    chip_bytes,
    compile_phase,
    mean_simulations,
    phases,
    work,
)
from azjax.training.lanes import abstract_state

CONFIG = preset("cpu", "tic_tac_toe", iterations=1)
NUM_STAGES = len(CONFIG.self_play.num_simulations)


def compiled(name="update", *, runs=1, **changes):
    values = {
        "name": name,
        "runs": runs,
        "seconds": 1.0,
        "arguments": 0,
        "of_state": 0,
        "outputs": 0,
        "temporaries": 0,
        "code": 0,
        "collectives": {},
        "counts": (Counts(1000, 10, 3_000_000, 0, 0, 0),) * NUM_STAGES,
    }
    return CompiledPhase(**values | changes)


WORK = Work(
    Counter({Product("product", (1, 2), (2, 3), (1, 3), terms=2): 5}),
    evaluations=(3.0,),
    update=100.0,
    replay_ratio=4.0,
)


def forecast_of(*of_run, chip=None):
    """A forecast for two chips."""
    return Forecast(CONFIG, "x", chip, 2, {"replay": 1000}, 0, of_run, None, WORK, "")


def test_work_counts_evaluations_and_updates_per_position():
    assert WORK.forward_flops == 5 * 2 * 3 * 2
    assert WORK.flops(3.0) == 3 * 60 + 4 * 100


def work_of(config):
    """Returns the work of a run whose gradient is one product of 2 by 2 matrices."""
    game = games.make(config.game)
    network, variables = untrained_shapes(game, config.network)
    share = jax.ShapeDtypeStruct((2, 2), "float32")
    gradient = Phase("gradient", jax.jit(lambda x: x @ x), (share,), (), 1)
    return work(config, game, network, variables, gradient=gradient)


def test_network_flops_match_its_trace():
    found = work_of(CONFIG)
    trunk: object = CONFIG.network.trunk
    width = trunk.width  # pyright: ignore
    dense = Product("product", (1, width), (width, width), (1, width), terms=width)
    assert found.forward[dense] == 2 * trunk.num_blocks  # pyright: ignore
    assert found.update == 2 * 2**3 / CONFIG.learner.batch_size
    assert found.replay_ratio == pytest.approx(CONFIG.learner.replay_ratio, rel=0.01)
    numbers = [1 + number for number in CONFIG.self_play.num_simulations]
    assert found.evaluations == tuple(numbers)


@pytest.mark.parametrize(("fraction", "played"), [(0.25, 0.75), (1.0, 0.0)])
def test_stored_games_need_no_evaluations(fraction, played):
    config = dataclasses.replace(
        CONFIG, learn_from=("elsewhere",), stored_fraction=fraction
    )
    numbers = [1 + number for number in config.self_play.num_simulations]
    assert work_of(config).evaluations == tuple(played * number for number in numbers)


def test_fast_searches_lower_the_mean_simulations():
    self_play = SelfPlayConfig(
        num_games=32, full_search_fraction=0.25, fast_simulations=8
    )
    config = dataclasses.replace(CONFIG, self_play=self_play)
    assert mean_simulations(config, 32) == 0.25 * 32 + 0.75 * 8
    assert mean_simulations(CONFIG, 32) == 32


def test_the_speed_on_a_tpu_is_that_of_the_cycles_of_all_calls():
    found = [compiled("self-play, 9 simulations"), compiled(runs=3)]
    found.append(compiled("evaluation", runs=0))
    found = forecast_of(*found, chip=CHIPS["v5e"])
    assert found.seconds(0) == {"self-play": 2e-3, "update": 6e-3}
    speed = pytest.approx(CONFIG.chunk_positions / 8e-3)
    assert found.speeds == (speed,) * NUM_STAGES


def test_the_speed_on_a_gpu_includes_simulations_and_products():
    found = forecast_of(compiled(), chip=CHIPS["h200"]).seconds(0)
    assert found is not None
    launched = 1000 * estimates.KERNEL + 10 * estimates.PREDICATE
    steps = CONFIG.self_play.moves_per_chunk * CONFIG.self_play.num_simulations[0]
    flops = CONFIG.chunk_positions * WORK.flops(3.0) / 2
    peak = CHIPS["h200"].peak(CONFIG.network.dtype)
    assert list(found.values()) == pytest.approx(
        [launched, steps * estimates.SIMULATION, flops / peak]
    )


@pytest.mark.parametrize("chip", [None, CHIPS["v6e"]])
def test_the_speed_of_an_unknown_chip_or_clock_is_not_estimated(chip):
    found = forecast_of(compiled(), chip=chip)
    assert found.seconds(0) is None
    assert found.speeds == ()


def test_a_chip_holds_the_state_all_code_and_the_largest_phase():
    found = forecast_of(
        compiled("self-play", temporaries=50, code=7),
        compiled("update", arguments=90, of_state=60, outputs=5, code=3),
    )
    assert found.needed == (1000 + 10 + 50, "self-play")


TINY = config("unused", iterations=1)
SELF_PLAY, INSERTION = 0, 1


@pytest.fixture(scope="module")
def mesh():
    return jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))


@pytest.fixture(scope="module")
def state_and_phases(mesh):
    game = games.make(TINY.game)
    network, variables = untrained(game, TINY.network)
    algorithm = make_algorithm(TINY, game, network, devices=list(mesh.devices))
    state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
    found = phases(TINY, game, network, algorithm, state=state)
    return state, list(found)


@pytest.fixture(scope="module")
def compile_nth(state_and_phases, mesh):
    """Returns a function that compiles a phase once."""
    return functools.cache(
        lambda number: compile_phase(state_and_phases[1][number], mesh, (1, 3))
    )


def test_phases_list_the_calls_of_an_iteration(state_and_phases, mesh):
    _, found = state_and_phases
    assert {phase.name: phase.runs for phase in found} == {
        "self-play, 2 simulations": 1,
        "insertion": 1,
        "index": 1,
        "gradient": TINY.updates_per_iteration,
        "update": TINY.updates_per_iteration,
        "evaluation, 2 simulations": 0,
    }
    for phase in found:
        for leaf in jax.tree.leaves(phase.arguments):
            assert isinstance(leaf, jax.ShapeDtypeStruct)
            assert leaf.sharding.mesh == mesh


def test_aliased_outputs_need_no_memory(compile_nth, state_and_phases):
    insertion, replay = compile_nth(INSERTION), state_and_phases[0].replay
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
def test_a_phase_on_one_device_writes_its_results_without_collectives(
    number, compile_nth
):
    phase = compile_nth(number)
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
