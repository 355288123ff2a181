"""Functions whose arrays are sharded over the devices of a mesh."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

AXIS = "data"  # of every mesh
REPLICATED, DIVIDED = PartitionSpec(), PartitionSpec(AXIS)


def use_all_cores() -> None:
    """Makes each core of a CPU a device, for a program that has not computed yet.

    XLA computes small arrays on one core of a device. Does nothing if the number of
    devices is chosen, by JAX's option `num_cpu_devices` or in `XLA_FLAGS`, or after
    JAX's first computation, when it is fixed.
    """
    is_in_flags = "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if is_in_flags or jax.config.values["jax_num_cpu_devices"] >= 0:
        return
    usable = getattr(os, "sched_getaffinity", None)  # on Linux
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    with contextlib.suppress(RuntimeError):  # JAX has found its devices already
        jax.config.update("jax_num_cpu_devices", cores)


def mesh_of(devices: Sequence[Any]) -> Mesh:
    """Returns a mesh of devices with one axis, `data`."""
    return Mesh(np.array(devices), (AXIS,))


def spread(
    function: Callable[..., Any],
    mesh: Mesh | None,
    *,
    num_replicated: int = 0,
    out_specs: Any = DIVIDED,
) -> Callable[..., Any]:
    """Returns a function for `jax.jit`; each device computes its own shard.

    Args:
        function: takes replicated arrays, then arrays sharded along their first axis.
        mesh: the devices; None returns the function itself.
        num_replicated: number of replicated arguments.
        out_specs: placement of the results, `DIVIDED` or `REPLICATED`.
    """
    if mesh is None:
        return function

    def divided(*args: Any) -> Any:
        num_divided = len(args) - num_replicated
        return jax.shard_map(
            function,
            mesh=mesh,
            in_specs=(REPLICATED,) * num_replicated + (DIVIDED,) * num_divided,
            out_specs=out_specs,
            check_vma=False,  # it rejects branches in mctx
        )(*args)

    return divided
