"""Compilation with few optimizations, for programs that run briefly."""

import json
import os
import subprocess
import sys

import jax

# One thread compiles a program: there are as many workers as cores.
FEW_OPTIMIZATIONS = (
    "--xla_cpu_parallel_codegen_split_count=1 --xla_backend_optimization_level=0 "
    "--xla_cpu_use_fusion_emitters=false"
)


def devices_flags(count):
    """Returns `XLA_FLAGS` for a program on a number of CPU devices.

    Programs are compiled with few optimizations if XLA knows the flags.
    """
    flags = FEW_OPTIMIZATIONS if jax.__version_info__ < (0, 11) else ""
    return f"{flags} --xla_force_host_platform_device_count={count}"


def found_on_devices(number, program, *arguments):
    """Returns the JSON that a program of Python prints on a number of CPU devices."""
    done = subprocess.run(
        [sys.executable, program, *arguments],
        env=os.environ | {"XLA_FLAGS": devices_flags(number)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)
