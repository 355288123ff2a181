import dataclasses
from collections import Counter

import jax
import pytest
from untrained import untrained_shapes

from azjax import games
from azjax.devices import CHIPS, Counts, Product, estimates
from azjax.training import SelfPlayConfig, preset
from azjax.training.forecast import Forecast, Work, mean_simulations, work
from azjax.training.phases import CompiledPhase, Phase

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


def forecast_of(*phases, chip=None):
    """A forecast for two chips."""
    return Forecast(CONFIG, "x", chip, 2, {"replay": 1000}, 0, phases, None, WORK, "")


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
    phases = [compiled("self-play, 9 simulations"), compiled(runs=3)]
    phases.append(compiled("evaluation", runs=0))
    found = forecast_of(*phases, chip=CHIPS["v5e"])
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
