"""Tests for `azjax.devices.spreading`."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax
from azjax.devices import use_all_cores
from azjax.training.lanes import spread_lanes
use_all_cores()
sizes = [spread_lanes(number, one_by_one=False).mesh.size for number in (1, 6)]
print(jax.device_count(), *sizes)
"""
CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()


@pytest.mark.parametrize(
    ("chosen", "devices"),
    [
        ({}, CORES),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=5"}, 5),
    ],
)
def test_cores_are_devices_and_a_run_takes_as_many_as_divide_its_lanes(chosen, devices):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"} | chosen,
        capture_output=True,
        text=True,
        check=True,
    )
    of_six = max(n for n in range(1, devices + 1) if 6 % n == 0)
    assert done.stdout.split() == [str(devices), "1", str(of_six)]
