"""Compilation with few optimizations, for programs that run briefly."""

import functools
import os

import jax

# One thread compiles a program: there are as many workers as cores.
ONE_THREAD = "--xla_cpu_parallel_codegen_split_count=1"
FEW_OPTIMIZATIONS = (
    f"{ONE_THREAD} --xla_backend_optimization_level=0 "
    "--xla_cpu_use_fusion_emitters=false"
)


def devices_flags(count):
    """Returns `XLA_FLAGS` for a program on a number of CPU devices.

    Programs are compiled with few optimizations if XLA knows the flags.
    """
    flags = FEW_OPTIMIZATIONS if jax.__version_info__ < (0, 11) else ""
    return f"{flags} --xla_force_host_platform_device_count={count}"


def quick_jit(function=None, **settings):
    """Returns `jax.jit` of a function, compiled in slow tests as in the fast ones.

    If the user has set `XLA_FLAGS`, it is `jax.jit`.
    """
    if function is None:
        return functools.partial(quick_jit, **settings)
    return jax.jit(function, compiler_options=quick_options(), **settings)


def quick_options():
    """Returns the options for `jax.jit`, or for `compile` of a lowered function."""
    if os.environ.get("XLA_FLAGS") != ONE_THREAD:
        return None
    return {
        "xla_backend_optimization_level": 0,
        "xla_cpu_use_fusion_emitters": False,
    }
