import pytest

from azjax.training.config import SelfPlayConfig, TrainConfig
from azjax.training.forecast import make_forecast


def forecast(minutes=2.0, simulations=(16,)):
    self_play = SelfPlayConfig(num_simulations=simulations)
    return make_forecast(
        TrainConfig(game="tic_tac_toe", minutes=minutes, self_play=self_play)
    )


def row(**changes):
    times = {"seconds": 20.0, "self_play_seconds": 4.0, "update_seconds": 1.0}
    return {"iteration": 3, "simulations": 16, **times, **changes}


def test_the_rest_of_the_run_holds_iterations_like_this_one():
    assert forecast().iterations(row()) == 3 + 100 / 5


def test_later_searches_of_more_simulations_last_longer():
    found = forecast(simulations=(16, 32)).iterations(row())
    assert found == int(3 + 40 / 5 + 60 / 9)


def test_a_run_that_is_over_has_the_iterations_that_it_had():
    assert forecast().iterations(row(seconds=130.0)) == 3


def test_a_run_measured_in_iterations_has_no_forecast():
    assert make_forecast(TrainConfig(game="tic_tac_toe", iterations=3)) is None


@pytest.mark.parametrize(("expected", "warns"), [(19, True), (20, False)])
def test_too_few_iterations_are_warned_of(expected, warns):
    text = forecast().text(expected)
    assert text.startswith(f"{expected} iterations are expected in 2 minutes")
    assert ("too few to learn much" in text) == warns
    assert "\n" not in text
