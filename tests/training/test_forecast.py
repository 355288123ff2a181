import dataclasses
from collections import Counter

import jax
import pytest
from untrained import untrained_shapes

from azjax import games
from azjax.devices import Product
from azjax.training import SelfPlayConfig, preset
from azjax.training.forecast import (
    LAUNCH_SECONDS,
    Forecast,
    Work,
    mean_simulations,
    work,
)
from azjax.training.phases import CompiledPhase, Launches, Phase

CONFIG = preset("cpu", "tic_tac_toe", iterations=1)


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
        "traffic": 0,
        "collectives": {},
        "launches": None,
    }
    return CompiledPhase(**values | changes)


WORK = Work(
    Counter({Product("product", (1, 2), (2, 3), (1, 3), terms=2): 5}),
    evaluations=(3.0,),
    update=100.0,
    replay_ratio=4.0,
)


def forecast_of(*phases, config=CONFIG):
    """A forecast for two chips."""
    return Forecast(config, "x", None, 2, {"replay": 1000}, 0, phases, None, WORK, "")


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


def test_the_speed_is_a_fraction_of_the_peak_of_all_chips(monkeypatch):
    assert forecast_of(compiled()).speeds == ()
    monkeypatch.setattr(Forecast, "peak", 1e12)
    assert forecast_of(compiled()).speeds == (pytest.approx(0.4 * 2e12 / 580),)


def test_a_chip_holds_the_state_all_code_and_the_largest_phase():
    found = forecast_of(
        compiled("self-play", temporaries=50, code=7),
        compiled("update", arguments=90, of_state=60, outputs=5, code=3),
    )
    assert found.needed == (1000 + 10 + 50, "self-play")


def test_the_traffic_per_position_is_that_of_all_phases_per_chunk():
    phases = [compiled(traffic=100), compiled(runs=3, traffic=10)]
    phases.append(compiled("evaluation", runs=0, traffic=10**9))
    expected = 2 * 130 / CONFIG.chunk_positions
    assert forecast_of(*phases).traffic == pytest.approx(expected)


def test_launch_time_is_proportional_to_simulations():
    launches = Launches(1, 2, 3, 4, (5,), 6)
    self_play = SelfPlayConfig(num_simulations=(9, 30))
    config = dataclasses.replace(CONFIG, self_play=self_play)
    steps = 30 * config.self_play.moves_per_chunk
    found = forecast_of(compiled(launches=launches), config=config)
    assert found.launch_seconds == pytest.approx(steps * 21 * LAUNCH_SECONDS)
    assert forecast_of(compiled()).launch_seconds == 0
