import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from quick_compilation import devices_flags
from training.tiny_runs import config

from azjax.training import train
from azjax.training.lanes import spread_lanes

PROGRAM = Path(__file__).with_name("eight_devices.py")


def found_on_devices(number, *arguments):
    """Returns the results of the program on this number of devices or fewer."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        env=os.environ | {"XLA_FLAGS": devices_flags(number)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_updates_in_quick_succession_do_not_deadlock():
    """Without `Lanes.wait` XLA ends the program after its timeout, with SIGABRT."""
    done = subprocess.run(
        [sys.executable, PROGRAM.with_name("queued_updates.py")],
        env=os.environ | {"XLA_FLAGS": devices_flags(4)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    assert 0 < float(done.stdout) < 2


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("tic_tac_toe", "3", "1", "4"), id="tic_tac_toe"),
        pytest.param(
            ("connect_four", "20", "1", "2", "8"),
            id="connect_four",
            marks=pytest.mark.slow,
        ),
        pytest.param(("go:5", "20", "1", "4"), id="go", marks=pytest.mark.slow),
    ],
)
def compared(request):
    return found_on_devices(int(request.param[-1]), *request.param)


@pytest.fixture(scope="module")
def found():
    return found_on_devices(8, "tic_tac_toe")


def test_exact_lanes_give_the_same_run_on_any_number_of_devices(compared):
    """All arrays of the state and all metrics are equal, bit for bit."""
    first, *others = compared["exact"]
    assert others == [first] * len(others)
    assert "policy_loss" in first[1][-1]


def test_a_run_continues_on_another_number_of_devices(compared):
    assert compared["resumed"] == compared["exact"][0]


@pytest.mark.slow
@pytest.mark.usefixtures("quick_plots", "shared_programs")
def test_exact_lanes_with_stored_games_give_the_same_run_on_any_number_of_devices(
    tmp_path,
):
    pytest.importorskip("pyarrow")
    source = train(config(tmp_path / "run", iterations=3)).directory
    found = found_on_devices(
        8, "tic_tac_toe", "--learn-from", str(source), "4", "1", "2", "8"
    )
    first, *others = found["exact"]
    assert others == [first] * 2
    assert found["resumed"] == first
    assert "policy_loss" in first[1][-1]


@pytest.mark.slow
def test_batched_lanes_play_the_same_moves(found):
    """Except ties that rounding decides."""
    assert found["other_actions"] < 0.01


@pytest.mark.slow
def test_an_update_has_one_collective(found):
    expected = {"self_play": [], "insert": [], "make_index": [], "gradient": []}
    assert found["collectives"] == {**expected, "update": ["all-reduce"]}


def test_devices_must_divide_the_lanes():
    with pytest.raises(ValueError, match="must be a multiple of the 3 devices: 8"):
        spread_lanes(8, one_by_one=False, devices=3 * jax.devices()[:1])


def test_one_device_has_all_lanes():
    assert spread_lanes(6, one_by_one=False).mesh.size == 1
