"""Lanes: the fixed parts of a run, which are spread over the devices.

A run's games, replay and batches are divided into L lanes, each with random keys of its
own. Arrays of lanes have an axis `[L, ...]` in front, which is sharded over the
devices; what the lanes share is on each of them. The same lanes give the same run on
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
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "data"  # of the mesh
SHARED, BY_LANE = PartitionSpec(), PartitionSpec(AXIS)


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
    def shared(self) -> NamedSharding:
        """The sharding of arrays that are the same on each device."""
        return NamedSharding(self.mesh, SHARED)

    @property
    def by_lane(self) -> NamedSharding:
        """The sharding of arrays `[L, ...]`."""
        return NamedSharding(self.mesh, BY_LANE)

    def jit(
        self,
        function: Callable[..., Any],
        *,
        num_shared: int = 0,
        donate_argnums: Sequence[int] = (),
        out_specs: Any = BY_LANE,
    ) -> Callable[..., Any]:
        """Returns the jitted function, of which each device computes its lanes.

        Args:
            function: of arrays that are shared and then of arrays of some lanes, to
                arrays of these lanes.
            num_shared: the arguments that are shared.
            donate_argnums: as in `jax.jit`.
            out_specs: of the result, where some of it is shared: `SHARED`.
        """

        def spread(*args: Any) -> Any:
            num_laned = len(args) - num_shared
            return jax.shard_map(
                function,
                mesh=self.mesh,
                in_specs=(SHARED,) * num_shared + (BY_LANE,) * num_laned,
                out_specs=out_specs,
                check_vma=False,  # mctx has branches that it refuses
            )(*args)

        return jax.jit(spread, donate_argnums=donate_argnums)

    def jit_products(
        self, function: Callable[..., Any], *, num_shared: int
    ) -> Callable[..., Any]:
        """Returns the same of a function with matrix products, whose bits depend on the
        size of a batch: with `one_by_one` it is computed of one lane after another."""
        if not self.one_by_one:
            return self.jit(function, num_shared=num_shared)

        def of_lane(number: Any, *args: Any) -> Any:
            shared, laned = args[:num_shared], args[num_shared:]
            return function(*shared, *jax.tree.map(lambda x: x[number][None], laned))

        # A loop in one program would be compiled for its length, with other bits.
        of_lane = self.jit(of_lane, num_shared=1 + num_shared)
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
        is shared and has the same bits on any number of devices."""

        def mean(laned: Any) -> Any:
            return jax.tree.map(
                lambda x: jax.lax.all_gather(x, AXIS, tiled=True).mean(axis=0), laned
            )

        return self.jit(mean, out_specs=SHARED)

    def share(self, arrays: Any) -> Any:
        """Returns copies of arrays on every device: of those of the lanes, or of some
        that each process has."""
        # `jax.device_put` does not reach the devices of other processes.
        return _copy(self.shared)(arrays)

    def to_host(self, arrays: Any) -> Any:
        """Returns arrays of all lanes as NumPy's, in every process."""
        return jax.device_get(self.share(arrays))


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
    return Lanes(Mesh(np.array(devices), (AXIS,)), number, one_by_one)


def on_one_device(shared: Any) -> Any:
    """Returns shared arrays as one of this process's devices holds them."""
    return jax.tree.map(lambda array: array.addressable_data(0), shared)
