"""Lanes: equal parts of games, replay and batches, sharded over the devices.

A run's games, replay and batches are divided into L lanes, each with its own random
keys. Lane arrays have a leading axis, `[L, ...]`, which is sharded over the devices;
all other arrays are replicated. The same lanes give the same run on any number of
devices that divides L: up to rounding if a device computes its lanes in one batch, bit
for bit if it computes them one by one.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, Sharding

from azjax.devices import (
    AXIS,
    DIVIDED,
    REPLICATED,
    jit_network,
    mesh_of,
    spread,
)


class Lanes(NamedTuple):
    """The placement of a run's lanes on the devices.

    mesh: the devices, along one axis.
    number: L.
    one_by_one: whether a device computes matrix products lane by lane.
    """

    mesh: Mesh
    number: int
    one_by_one: bool = False

    @property
    def platform(self) -> str:
        """The platform of the devices, such as `cpu`."""
        return self.mesh.devices.flat[0].platform

    @property
    def replicated(self) -> NamedSharding:
        """The sharding of replicated arrays."""
        return NamedSharding(self.mesh, REPLICATED)

    @property
    def by_lane(self) -> NamedSharding:
        """The sharding of arrays `[L, ...]`."""
        return NamedSharding(self.mesh, DIVIDED)

    def jit(
        self,
        function: Callable[..., Any],
        *,
        num_replicated: int = 0,
        donate_argnums: Sequence[int] = (),
        out_specs: Any = DIVIDED,
    ) -> Callable[..., Any]:
        """Returns the jitted function; each device computes its own lanes.

        Args:
            function: takes replicated arrays, then lane arrays; returns lane arrays.
            num_replicated: number of replicated arguments.
            donate_argnums: as in `jax.jit`.
            out_specs: of the results, `DIVIDED` or `REPLICATED`.
        """
        divided = spread(
            function, self.mesh, num_replicated=num_replicated, out_specs=out_specs
        )
        return jax.jit(divided, donate_argnums=donate_argnums)

    def jit_network(
        self,
        function: Callable[..., Any],
        *,
        num_replicated: int,
        donate_argnums: Sequence[int] = (),
    ) -> Callable[..., Any]:
        """`jit` for a function that evaluates a network; see
        `azjax.devices.jit_network`. The rounding of matrix products depends on the
        batch size; with `one_by_one` the function is called once per lane and donates
        nothing."""
        if not self.one_by_one:
            divided = spread(function, self.mesh, num_replicated=num_replicated)
            return jit_network(divided, donate_argnums=donate_argnums)

        def of_lane(number: Any, *args: Any) -> Any:
            laned = args[num_replicated:]
            lane = jax.tree.map(lambda x: x[number][None], laned)
            return function(*args[:num_replicated], *lane)

        # A loop inside one program would compile differently for each length.
        of_lane = jit_network(
            spread(of_lane, self.mesh, num_replicated=1 + num_replicated)
        )
        join = self.jit(
            lambda *lanes: jax.tree.map(lambda *x: jnp.concatenate(x), *lanes)
        )
        numbers = [np.int32(number) for number in range(self.number // self.mesh.size)]
        return lambda *args: join(*(of_lane(number, *args) for number in numbers))

    def wait(self, arrays: Any) -> Any:
        """Returns the arrays; on several devices of a CPU, waits for them.

        XLA can deadlock on a CPU if a reduction waits for other devices while programs
        are queued behind it. Wait for the arguments and the results of a reduction.
        """
        if self.platform == "cpu" and self.mesh.size > 1:
            jax.block_until_ready(arrays)
        return arrays

    def mean_of_devices(self, tree: Any) -> Any:
        """Averages float32 arrays over the devices, in one reduction; called inside a
        function of `jit`."""
        if self.mesh.size == 1:
            return tree
        flat, unravel = ravel_pytree(tree)
        return unravel(jax.lax.pmean(flat, AXIS))

    def mean(self) -> Callable[[Any], Any]:
        """Returns the jitted mean over the lanes, `[L, ...]` to `[...]`, replicated and
        with the same bits on any number of devices."""

        def mean(laned: Any) -> Any:
            return jax.tree.map(
                lambda x: jax.lax.all_gather(x, AXIS, tiled=True).mean(axis=0), laned
            )

        return self.jit(mean, out_specs=REPLICATED)

    def replicate(self, arrays: Any) -> Any:
        """Copies lane arrays, or arrays that each process has, to every device."""
        # `jax.device_put` cannot write to devices of other processes.
        return self.wait(_copy(self.replicated)(self.wait(arrays)))


@functools.cache
def _copy(sharding: NamedSharding) -> Callable[[Any], Any]:
    return jax.jit(
        lambda arrays: jax.tree.map(jnp.copy, arrays), out_shardings=sharding
    )


def spread_lanes(
    number: int, *, one_by_one: bool, devices: Sequence[Any] | None = None
) -> Lanes:
    """Returns lanes spread over devices.

    Args:
        number: L.
        one_by_one: as in `Lanes`.
        devices: by default all; on a CPU as many as divide L.

    Raises:
        ValueError: L is not a multiple of the number of devices.
    """
    if devices is None:
        devices = jax.devices()
        if devices[0].platform == "cpu" and jax.process_count() == 1:
            counts = range(1, len(devices) + 1)
            devices = devices[: max(n for n in counts if number % n == 0)]
    if number % len(devices):
        raise ValueError(
            f"num_lanes must be a multiple of the {len(devices)} devices: {number}"
        )
    return Lanes(mesh_of(devices), number, one_by_one)


def on_one_device(replicated: Any) -> Any:
    """Returns replicated arrays as arrays on one of this process's devices."""
    return jax.tree.map(lambda array: array.addressable_data(0), replicated)


def abstract_state(init: Callable[[], Any], shardings: Callable[[Any], Any]) -> Any:
    """Returns the `jax.ShapeDtypeStruct`s of a state without computing it.

    Args:
        init: returns the state; only traced.
        shardings: maps the shapes of a state to the sharding of each leaf.
    """
    shapes = jax.eval_shape(init)
    return jax.tree.map(abstract_array, shapes, shardings(shapes))


def abstract_array(array: Any, sharding: Sharding) -> jax.ShapeDtypeStruct:
    """Returns an array's shape and dtype with a sharding."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)
