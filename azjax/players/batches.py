"""Batches of positions that are divided among devices.

A large batch has equal lanes, each with its own random key, as in `azjax.search.keys`.
A device computes one or several lanes: random draws do not depend on the number of
devices, and choices only through rounding. Several processes each compute some lanes
and gather the results at the end.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import multihost_utils
from jax.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)

from azjax.devices import DIVIDED, REPLICATED, mesh_of

NUM_LANES = 8
MIN_DIVIDED = 64  # positions; a smaller batch is one lane on one device


class Division(NamedTuple):
    """How large batches are divided.

    num_lanes: L, equal parts of a batch.
    devices: the devices that compute the lanes; None for all of this process. A process
        uses as many of its devices as divide its lanes. Devices of several processes
        must be those of all processes, whose number must divide L; all processes then
        compute the same batches.
    """

    num_lanes: int = NUM_LANES
    devices: Sequence[Any] | None = None

    def padded(self, size: int) -> int:
        """Returns the size of a batch, rounded up to a multiple of L."""
        return -(-size // self.num_lanes) * self.num_lanes


LOCAL = Division()


class BatchLayout(NamedTuple):
    """The layout of a batch of B positions.

    size: B.
    num_lanes: L.
    mesh: devices of this process along one axis; None for one device.
    num_processes: number of processes that compute the batch; each has
        L / num_processes lanes, in the order of the processes.
    """

    size: int
    num_lanes: int = 1
    mesh: Mesh | None = None
    num_processes: int = 1

    def keys(self, rng_key: jax.Array) -> jax.Array:
        """Returns one key, or for several lanes the keys of this process, divided among
        its devices; `rng_key` is consumed."""
        if self.num_lanes == 1:
            return rng_key
        return self.by_position(jax.random.split(rng_key, self.num_lanes))

    def replicated(self, tree: Any) -> Any:
        """Copies arrays to every device of this process."""
        return jax.device_put(tree, self._sharding(REPLICATED))

    def by_position(self, tree: Any) -> Any:
        """Selects this process's part of arrays `[B, ...]` or `[L, ...]` and divides it
        among its devices."""
        own = tree if self.num_processes == 1 else jax.tree.map(self._own, tree)
        return jax.device_put(own, self._sharding(DIVIDED))

    def to_host(self, tree: Any) -> Any:
        """Returns the arrays of all positions as NumPy arrays, in every process.

        Args:
            tree: arrays of this process's positions, with the same shapes in all
                processes.
        """
        if self.num_processes == 1:
            return jax.device_get(tree)
        return multihost_utils.process_allgather(tree, tiled=True)

    def _own(self, array: Any) -> Any:
        size = len(array) // self.num_processes
        first = size * jax.process_index()
        return array[first : first + size]

    def _sharding(self, spec: PartitionSpec) -> Sharding:
        # On one device too, or a program would be compiled again for results of itself,
        # which are on the device of a trained player.
        if self.mesh is None:
            return SingleDeviceSharding(jax.local_devices()[0])
        return NamedSharding(self.mesh, spec)


def batch_layout(
    size: int, players: Sequence[Any], division: Division = LOCAL
) -> BatchLayout:
    """Returns the layout of batches for compiled players.

    A batch of at least `MIN_DIVIDED` positions is divided if all players have
    `draws_in_lanes`; its size is rounded up to a multiple of the number of lanes. Other
    batches are computed on one device, by each process separately.

    Args:
        size: positions in the batch, at least 1.
        players: the players that choose in it.
        division: how large batches are divided.
    """
    num_lanes = division.num_lanes
    in_lanes = all(getattr(player, "draws_in_lanes", False) for player in players)
    if num_lanes == 1 or size < MIN_DIVIDED or not in_lanes:
        return BatchLayout(size)
    local = jax.local_devices()
    devices = local if division.devices is None else division.devices
    num_processes = len({device.process_index for device in devices})
    if num_lanes % num_processes:
        raise ValueError(
            f"num_lanes must be a multiple of the {num_processes} processes: "
            f"{num_lanes}"
        )
    own = [device for device in devices if device in local]
    own_lanes = num_lanes // num_processes
    number = max(n for n in range(1, len(own) + 1) if own_lanes % n == 0)
    return BatchLayout(
        size=division.padded(size),
        num_lanes=num_lanes,
        mesh=None if number == 1 else mesh_of(own[:number]),
        num_processes=num_processes,
    )
