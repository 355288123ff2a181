"""The platform for which programs are traced, and its compiler's options."""

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

_log = logging.getLogger(__name__)
_targets: list[str] = []
# By default XLA computes single convolutions on a CPU with YNNPACK, at half the speed
# of Eigen. These are its other defaults, in JAX 0.10 to 0.12.
_CPU_OPTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": (
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
    )
}
# By default the host launches every kernel of a loop on a GPU, and waits for the test
# of its end. With these options the loop is one CUDA graph, if the driver has CUDA 12.3
# or newer; WHILE and CONVOLUTION are not among XLA's defaults.
_GPU_OPTIONS = {
    "xla_gpu_enable_command_buffer": (
        "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,CONDITIONAL,WHILE,CONVOLUTION"
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

    On a CPU they double the speed of convolutions; on an NVIDIA GPU they make loops
    CUDA graphs, unless `XLA_FLAGS` has `--xla_gpu_enable_command_buffer`. `jit_network`
    applies them.

    Args:
        platform: `cpu`, `gpu` or `tpu`.
    """
    if platform == "cpu":
        return _cpu_options()
    is_set = "xla_gpu_enable_command_buffer" in os.environ.get("XLA_FLAGS", "")
    return _gpu_options() if platform == "gpu" and not is_set else None


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


@functools.cache
def _gpu_options() -> dict[str, str] | None:
    """Returns the options if the GPU, or an absent one, runs a loop with them."""
    gpus = [device for device in jax.local_devices() if device.platform == "gpu"]
    if not gpus:
        return _GPU_OPTIONS
    if "cuda" not in gpus[0].client.platform_version.lower():
        return None  # AMD's graphs of loops crash
    options = {**_GPU_OPTIONS, "xla_gpu_graph_min_graph_size": "1"}
    count = jax.jit(_count_to, compiler_options=options)
    try:
        with jax.default_device(gpus[0]):
            # XLA launches the kernels themselves first, then makes the graph, and
            # changes it in later runs.
            counted = [int(count(number)) for number in range(5)]
    except jax.errors.JaxRuntimeError as error:
        counted = str(error).partition("\n")[0]
    if counted == list(range(5)):
        return _GPU_OPTIONS
    _log.warning(
        "loops do not run as CUDA graphs on %s, and searches take longer: counting to "
        "0, 1, 2, 3 and 4 gave %s",
        gpus[0].device_kind,
        counted,
    )
    return None


def _count_to(number: jax.Array) -> jax.Array:
    zero = jnp.zeros_like(number)
    return jax.lax.while_loop(
        lambda count: count < number, lambda count: count + 1, zero
    )


class NetworkFunction:
    """A jitted function; made by `jit_network`."""

    def __init__(self, function: Callable[..., Any], settings: dict[str, Any]):
        functools.update_wrapper(self, function)
        self._function, self._settings = function, settings
        self._jitted: dict[str | None, Any] = {}  # by platform

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the compiled function."""
        return self._for(args, kwargs)(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """Traces it, as the result of `jax.jit` does."""
        return self._for(args, kwargs).trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Lowers it, as the result of `jax.jit` does."""
        return self._for(args, kwargs).lower(*args, **kwargs)

    def _for(self, *arguments: Any) -> Any:
        """Returns the result of `jax.jit` for the platform of some arguments."""
        platform = _platform(jax.tree.leaves(arguments))
        if platform not in self._jitted:
            options = None if platform is None else network_compiler_options(platform)
            self._jitted[platform] = jax.jit(
                self._function, compiler_options=options, **self._settings
            )
        return self._jitted[platform]


def _platform(leaves: list[Any]) -> str | None:
    """Returns the platform that computes with some arguments; None if they are traced:
    JAX takes options for the outermost `jax.jit` only."""
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return None
    for leaf in leaves:
        sharding = getattr(leaf, "sharding", None)
        if sharding is not None and getattr(leaf, "committed", True):
            return next(iter(sharding.device_set)).platform
    return target_platform()


def jit_network(function: Callable[..., Any], **settings: Any) -> NetworkFunction:
    """Returns `jax.jit(function, **settings)` for a function that evaluates a network.

    The program is compiled with the `network_compiler_options` of the devices of its
    arguments. No backend is initialized before the first call. Inside another
    `jax.jit`, the options are those of the other one.
    """
    return NetworkFunction(function, settings)
