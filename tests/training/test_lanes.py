from pathlib import Path

import jax
import pytest
from quick_compilation import found_on_devices

from azjax.training.lanes import spread_lanes

PROGRAM = Path(__file__).with_name("eight_devices.py")


@pytest.mark.slow
def test_updates_in_quick_succession_do_not_deadlock():
    """Without `Lanes.wait` XLA ends the program after its timeout, with SIGABRT."""
    assert 0 < found_on_devices(4, PROGRAM.with_name("queued_updates.py")) < 2


@pytest.fixture(scope="module")
def found():
    return found_on_devices(8, PROGRAM, "tic_tac_toe")


def assert_equal_runs(compared):
    """All arrays of the state and all metrics are equal, bit for bit, also if the run
    continues on another number of devices after each iteration."""
    first, *others = compared["exact"]
    assert others == [first] * len(others)
    assert "policy_loss" in first[1][-1]
    assert compared["resumed"] == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "numbers"), [("ur:2", ("1", "8")), ("go:5", ("1", "4"))]
)
def test_exact_lanes_give_the_same_run_on_any_number_of_devices(game, numbers):
    assert_equal_runs(found_on_devices(8, PROGRAM, game, "6", *numbers))


@pytest.fixture(
    scope="module", params=["1", pytest.param("0.5", marks=pytest.mark.slow)]
)
def compared(request, undisturbed):
    """Runs with stored games in a fraction of the slots."""
    source = ("--learn-from", str(undisturbed.directory), request.param)
    return found_on_devices(2, PROGRAM, "tic_tac_toe", *source, "3", "1", "2")


def test_exact_lanes_with_stored_games_give_the_same_run_on_any_number_of_devices(
    compared,
):
    assert_equal_runs(compared)


@pytest.mark.slow
def test_batched_lanes_play_the_same_moves(found):
    """Except ties that rounding decides."""
    assert found["other_actions"] < 0.01


@pytest.mark.slow
def test_a_run_takes_as_many_devices_of_a_cpu_as_divide_its_lanes(found):
    assert found["devices"] == [1, 6, 8]


@pytest.mark.slow
def test_an_update_has_one_collective(found):
    expected = {"self_play": [], "insert": [], "make_index": [], "gradient": []}
    assert found["collectives"] == {**expected, "update": ["all-reduce"]}


def test_devices_must_divide_the_lanes():
    with pytest.raises(ValueError, match="must be a multiple of the 3 devices: 8"):
        spread_lanes(8, one_by_one=False, devices=3 * jax.devices()[:1])


def test_one_device_has_all_lanes():
    assert spread_lanes(6, one_by_one=False).mesh.size == 1
