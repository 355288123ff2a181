"""Lanes: the fixed parts of a run, which are spread over the devices.

A run's games, replay and batches are divided into L lanes, each with random keys of its
own. Arrays of lanes have an axis `[L, ...]` in front, which is sharded over the
devices; what the lanes share is replicated. The same lanes give the same run on
any number of devices that divides L: up to rounding where a device computes its lanes
in one batch, bit for bit where it computes one after another.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, Sharding

from azjax.devices import AXIS, DIVIDED, REPLICATED, mesh_of, spread


class Lanes(NamedTuple):
    """How the lanes of a run lie on the devices.

    mesh: the devices, along one axis.
    number: L.
    one_by_one: whether a device computes matrix products of one lane after another.
    """

    mesh: Mesh
    number: int
    one_by_one: bool = False

    @property
    def replicated(self) -> NamedSharding:
        """The sharding of arrays that are the same on each device."""
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
        """Returns the jitted function, of which each device computes its lanes.

        Args:
            function: of arrays that are replicated and then of arrays of some lanes,
                to arrays of these lanes.
            num_replicated: the arguments that are replicated.
            donate_argnums: as in `jax.jit`.
            out_specs: of the results, `DIVIDED` or `REPLICATED`.
        """

        divided = spread(
            function, self.mesh, num_replicated=num_replicated, out_specs=out_specs
        )
        return jax.jit(divided, donate_argnums=donate_argnums)

    def jit_products(
        self, function: Callable[..., Any], *, num_replicated: int
    ) -> Callable[..., Any]:
        """Returns the same of a function with matrix products, whose bits depend on the
        size of a batch: with `one_by_one` it is computed of one lane after another."""
        if not self.one_by_one:
            return self.jit(function, num_replicated=num_replicated)

        def of_lane(number: Any, *args: Any) -> Any:
            laned = args[num_replicated:]
            lane = jax.tree.map(lambda x: x[number][None], laned)
            return function(*args[:num_replicated], *lane)

        # A loop in one program would be compiled for its length, with other bits.
        of_lane = self.jit(of_lane, num_replicated=1 + num_replicated)
        join = self.jit(
            lambda *lanes: jax.tree.map(lambda *x: jnp.concatenate(x), *lanes)
        )
        numbers = [np.int32(number) for number in range(self.number // self.mesh.size)]
        return lambda *args: join(*(of_lane(number, *args) for number in numbers))

    def mean_of_devices(self, tree: Any) -> Any:
        """Returns the mean of float32 arrays over the devices, in one reduction; called
        by a function of `jit`."""
        if self.mesh.size == 1:
            return tree
        flat, unravel = ravel_pytree(tree)
        return unravel(jax.lax.pmean(flat, AXIS))

    def mean(self) -> Callable[[Any], Any]:
        """Returns the jitted function of arrays `[L, ...]` to their mean `[...]`, which
        is replicated and has the same bits on any number of devices."""

        def mean(laned: Any) -> Any:
            return jax.tree.map(
                lambda x: jax.lax.all_gather(x, AXIS, tiled=True).mean(axis=0), laned
            )

        return self.jit(mean, out_specs=REPLICATED)

    def replicate(self, arrays: Any) -> Any:
        """Returns copies of arrays on every device: of those of the lanes, or of some
        that each process has."""
        # `jax.device_put` does not reach the devices of other processes.
        return _copy(self.replicated)(arrays)

    def to_host(self, arrays: Any) -> Any:
        """Returns arrays of all lanes as NumPy's, in every process."""
        return jax.device_get(self.replicate(arrays))


@functools.cache
def _copy(sharding: NamedSharding) -> Callable[[Any], Any]:
    return jax.jit(
        lambda arrays: jax.tree.map(jnp.copy, arrays), out_shardings=sharding
    )


def spread_lanes(
    number: int, *, one_by_one: bool, devices: Sequence[Any] | None = None
) -> Lanes:
    """Returns lanes that are spread over devices.

    Args:
        number: L.
        one_by_one: as in `Lanes`.
        devices: all by default.

    Raises:
        ValueError: their number does not divide that of the lanes.
    """
    devices = jax.devices() if devices is None else devices
    if number % len(devices):
        raise ValueError(
            f"num_lanes must be a multiple of the {len(devices)} devices: {number}"
        )
    return Lanes(mesh_of(devices), number, one_by_one)


def on_one_device(replicated: Any) -> Any:
    """Returns replicated arrays as one of this process's devices holds them."""
    return jax.tree.map(lambda array: array.addressable_data(0), replicated)


def abstract_state(init: Callable[[], Any], shardings: Callable[[Any], Any]) -> Any:
    """Returns `jax.ShapeDtypeStruct` in place of the arrays of a state that is not
    computed.

    Args:
        init: would compute the state.
        shardings: of the shapes of a state to the sharding of each leaf.
    """
    shapes = jax.eval_shape(init)
    return jax.tree.map(abstract_array, shapes, shardings(shapes))


def abstract_array(array: Any, sharding: Sharding) -> jax.ShapeDtypeStruct:
    """Returns shape and dtype of an array, with a sharding."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)
