"""Absent devices to compile for: TPU slices and NVIDIA GPUs.

XLA's compilers need no device: libtpu contains that of TPUs, JAX's CUDA plugin that of
NVIDIA GPUs.
"""

import dataclasses
import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.experimental import topologies

from azjax.devices.chips import CHIPS, Chip
from azjax.devices.hlo import Program, read_captured, read_program
from azjax.devices.spreading import mesh_of
from azjax.devices.target import tracing_for
from azjax.program import WITHOUT_TPU

MAX_TPUS = 1024
MAX_GPUS = 8  # of one node
_SLICE = re.compile(r"\d{1,3}x\d{1,3}(x\d{1,3})?")
# Autotuning measures kernels on the GPU, which is absent.
_GPU_OPTIONS = {"xla_gpu_autotune_level": "0"}
# Without them XLA takes loops out of CUDA graphs, which needs CUDA 12.3.
_CUDA_VERSIONS = (
    'driver_version: "13.0.0" kernel_mode_driver_version: "580.0.0" '
    'runtime_version: "12.9.0" compile_time_toolkit_version: "12.9.0"'
)
# No exclusive lock on libtpu. The accelerator type has no effect on the topology.
_LIBTPU = {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1", **WITHOUT_TPU}


def parse_device(name: str) -> tuple[Chip, str]:
    """Parses `v5e:2x4` or `h100:8`; returns the chip and the topology: the sizes of a
    TPU slice, or the number of GPUs."""
    chip_name, colon, shape = name.partition(":")
    chip = CHIPS.get(chip_name)
    if chip is None:
        raise ValueError(
            f"unknown device {name!r}; known devices are {', '.join(CHIPS)}, for "
            "example v5e:2x4, a TPU slice of 2x4 chips, or h100:8"
        )
    if chip.gpu is not None:
        shape = shape if colon else "1"
        if (
            not shape.isascii()
            or not shape.isdigit()
            or not 1 <= int(shape) <= MAX_GPUS
        ):
            raise ValueError(
                f"{chip_name} takes a number of GPUs from 1 to {MAX_GPUS}, for example "
                f"{chip_name}:8: {name!r}"
            )
        return chip, shape
    sizes = [int(size) for size in shape.split("x")] if _SLICE.fullmatch(shape) else []
    if not 1 <= math.prod(sizes or [0]) <= MAX_TPUS:
        is_cube = chip_name in ("v4", "v5p")
        one, example = ("1x1x1", "2x2x2") if is_cube else ("1x1", "2x4")
        raise ValueError(
            f"{chip_name} takes the sizes of a slice of at most {MAX_TPUS} chips, for "
            f"example {chip_name}:{example}, or {chip_name}:{one} for one chip: "
            f"{name!r}"
        )
    return chip, shape


def topology_mesh(name: str) -> jax.sharding.Mesh:
    """Returns a mesh of devices to compile for, with one axis, `data`.

    Args:
        name: device name, as `parse_device` accepts it.

    Raises:
        ValueError: the topology does not exist, or its compiler is not installed.
    """
    chip, shape = parse_device(name)
    if chip.gpu is None:
        devices = _tpu_devices(name, chip, shape)
    else:
        devices = _gpu_devices(name, chip, shape)
    return mesh_of(devices)


def compile_for(
    mesh: jax.sharding.Mesh,
    function: Callable[..., Any],
    *arguments: Any,
    options: dict[str, str] | None = None,
) -> jax.stages.Compiled:
    """Compiles a jitted function for the devices of a mesh.

    Args:
        mesh: mesh of available devices, or of `topology_mesh`.
        function: function to compile, returned by `jax.jit` or `jit_network`.
        *arguments: `jax.ShapeDtypeStruct`s with shardings over the mesh.
        options: compiler options, besides those of the function.
    """
    device = mesh.devices.flat[0]
    with tracing_for(device.platform):
        traced = function.trace(*arguments)  # pyright: ignore[reportFunctionMemberAccess]
    if device in jax.devices():
        return traced.lower().compile(compiler_options=options)
    if device.platform == "gpu":
        options = _GPU_OPTIONS | (options or {})
        return traced.lower(lowering_platforms=("cuda",)).compile(options)
    return traced.lower(lowering_platforms=("tpu",)).compile(options)


def compile_program(
    mesh: jax.sharding.Mesh, function: Callable[..., Any], *arguments: Any
) -> tuple[jax.stages.Compiled, Program]:
    """Compiles a jitted function, as `compile_for` does, and reads its program; for a
    GPU also what XLA captures in CUDA graphs."""
    if mesh.devices.flat[0].platform != "gpu":
        compiled = compile_for(mesh, function, *arguments)
        return compiled, read_program(compiled.as_text() or "")
    # XLA forms the graphs after the program that `as_text` returns.
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder}
        compiled = compile_for(mesh, function, *arguments, options=options)
        captured = read_captured(Path(folder))
    program = read_program(compiled.as_text() or "")
    return compiled, dataclasses.replace(program, captured=captured)


def _tpu_devices(name: str, chip: Chip, shape: str) -> Sequence[Any]:
    for variable, value in _LIBTPU.items():
        os.environ.setdefault(variable, value)
    options: dict[str, Any] = {}
    if chip.name == "v4":
        options["chip_config_name"] = "megacore"  # one device a chip, as on TPU VMs
    if not shape.strip("1x"):  # one chip; by default a host has four
        options["chips_per_host_bounds"] = [1, 1, 1]
    try:
        return topologies.get_topology_desc(
            platform="tpu", topology_name=f"{chip.name}:{shape}", **options
        ).devices
    except (RuntimeError, NotImplementedError) as error:
        if "not installed" in str(error):
            raise _is_missing(name, "TPU", "tpu") from None
        raise ValueError(f"unknown device {name!r}: {_reason(error)}") from None


def _gpu_devices(name: str, chip: Chip, shape: str) -> Sequence[Any]:
    try:
        return topologies.get_topology_desc(
            platform="cuda",
            topology_name=chip.name,
            topology=f"1x1x{shape}",
            target_config=target_config(chip),
        ).devices
    except NotImplementedError:
        raise _is_missing(name, "NVIDIA GPU", "cuda") from None
    except RuntimeError as error:
        raise ValueError(f"unknown device {name!r}: {_reason(error)}") from None


def _is_missing(name: str, kind: str, extra: str) -> ValueError:
    return ValueError(
        f"compiling for {name} needs JAX's {kind} support: pip install 'azjax[{extra}]'"
    )


def _reason(error: Exception) -> str:
    """Returns the first line of an XLA message without its status."""
    return str(error).partition("\n")[0].partition(": ")[2] or str(error)


def target_config(chip: Chip) -> str:
    """Returns the `GpuTargetConfigProto` of an NVIDIA GPU, as text."""
    gpu = chip.gpu
    if gpu is None:
        raise ValueError(f"{chip.name} is not a GPU")
    major, minor = gpu.capability
    return (
        "gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 "
        "shared_memory_per_block: 49152 "
        f"shared_memory_per_core: {gpu.shared} "
        f"threads_per_core_limit: {gpu.threads} core_count: {gpu.cores} "
        f"fpus_per_core: {gpu.fpus} block_dim_limit_x: 2147483647 "
        "block_dim_limit_y: 65535 block_dim_limit_z: 65535 "
        f"memory_bandwidth: {chip.bandwidth:.0f} l2_cache_size: {gpu.cache} "
        f"clock_rate_ghz: {gpu.clock} device_memory_size: {gpu.memory} "
        f"shared_memory_per_block_optin: {gpu.shared_block} "
        f"cuda_compute_capability {{ major: {major} minor: {minor} }} "
        "registers_per_core_limit: 65536 registers_per_block_limit: 65536 "
        f"{_CUDA_VERSIONS} }} "
        'platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 } '
        f'device_description_str: "{gpu.kind}"'
    )
