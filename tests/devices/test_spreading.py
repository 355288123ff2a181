"""Tests for `azjax.devices.spreading`."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax
from azjax.devices import use_all_cores
use_all_cores()
print(jax.device_count())
"""
CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()


@pytest.mark.parametrize(
    ("chosen", "devices"),
    [
        ({}, CORES),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=5"}, 5),
    ],
)
def test_each_core_of_a_cpu_is_a_device_unless_a_number_is_chosen(chosen, devices):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"} | chosen,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == devices
