"""Compilation with few optimizations, for programs that run briefly."""

import functools

import jax

# One thread compiles a program: there are as many workers as cores.
ONE_THREAD = "--xla_cpu_parallel_codegen_split_count=1"
FEW_OPTIMIZATIONS = (
    f"{ONE_THREAD} --xla_backend_optimization_level=0 "
    "--xla_cpu_use_fusion_emitters=false"
)
# The values that XLA has without the flags.
ALL_OPTIMIZATIONS = {
    "xla_backend_optimization_level": 3,
    "xla_cpu_use_fusion_emitters": True,
}


def devices_flags(count):
    """Returns `XLA_FLAGS` for a program on a number of CPU devices.

    Programs are compiled with few optimizations if XLA knows the flags.
    """
    flags = FEW_OPTIMIZATIONS if jax.__version_info__ < (0, 11) else ""
    return f"{flags} --xla_force_host_platform_device_count={count}"


def optimizing(jit):
    """Returns `jax.jit` with all optimizations."""

    @functools.wraps(jit)
    def wrapped(function=None, *, compiler_options=None, **settings):
        options = {**ALL_OPTIMIZATIONS, **(compiler_options or {})}
        if function is None:
            return functools.partial(wrapped, compiler_options=options, **settings)
        return jit(function, compiler_options=options, **settings)

    return wrapped
