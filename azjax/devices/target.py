"""The platform for which programs are traced, and its compiler's options."""

import contextlib
import functools
from collections.abc import Iterator

import jax

_targets: list[str] = []
# By default XLA computes single convolutions on a CPU with YNNPACK, at half the speed
# of Eigen. These are its other defaults, in JAX 0.10 to 0.12.
_CPU_OPTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": (
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
    )
}


@contextlib.contextmanager
def tracing_for(platform: str) -> Iterator[None]:
    """A context in which programs are traced for a platform: `cpu`, `gpu` or `tpu`."""
    _targets.append(platform)
    try:
        yield
    finally:
        _targets.pop()


def target_platform() -> str:
    """Returns the platform of the program being traced; outside `tracing_for` that of
    the default backend.

    For code with a faster variant on some platforms; all variants return the same.
    """
    return _targets[-1] if _targets else jax.default_backend()


def network_compiler_options(platform: str) -> dict[str, str] | None:
    """Returns the `compiler_options` of `jax.jit` for a program with a network.

    On a CPU they double the speed of convolutions. JAX takes them for the outermost
    `jax.jit` only.

    Args:
        platform: `cpu`, `gpu` or `tpu`.
    """
    return _cpu_options() if platform == "cpu" else None


@functools.cache
def _cpu_options() -> dict[str, str] | None:
    """Returns the options if the installed XLA knows them."""
    cpu = jax.local_devices(backend="cpu")[0]
    try:
        with jax.default_device(cpu):
            jax.jit(lambda: 0, compiler_options=_CPU_OPTIONS)()
    except jax.errors.JaxRuntimeError:
        return None
    return _CPU_OPTIONS
