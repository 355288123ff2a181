"""Batches of positions that are divided among devices.

A large batch has equal parts, each with its own random key, as in `azjax.search.keys`.
A device computes one or several parts: random draws do not depend on the number of
devices, and choices only through rounding. Several processes each compute some parts
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

NUM_PARTS = 8
MIN_DIVIDED = 64  # positions; a smaller batch is one part on one device


class Division(NamedTuple):
    """How large batches are divided.

    num_parts: P, equal parts of a batch.
    devices: the devices that compute the parts; None for all of this process. A process
        uses as many of its devices as divide its parts. Devices of several processes
        must be those of all processes, whose number must divide P; all processes then
        compute the same batches.
    """

    num_parts: int = NUM_PARTS
    devices: Sequence[Any] | None = None

    def padded(self, size: int) -> int:
        """Returns the size of a batch, rounded up to a multiple of P."""
        return -(-size // self.num_parts) * self.num_parts


LOCAL = Division()


class BatchLayout(NamedTuple):
    """The layout of a batch of B positions.

    size: B.
    num_parts: P.
    mesh: devices of this process along one axis; None for one device.
    num_processes: number of processes that compute the batch; each has
        P / num_processes parts, in the order of the processes.
    """

    size: int
    num_parts: int = 1
    mesh: Mesh | None = None
    num_processes: int = 1

    def keys(self, rng_key: jax.Array) -> jax.Array:
        """Returns one key, or for several parts the keys of this process, divided among
        its devices; `rng_key` is consumed."""
        if self.num_parts == 1:
            return rng_key
        return self.by_position(jax.random.split(rng_key, self.num_parts))

    def replicated(self, tree: Any) -> Any:
        """Copies arrays to every device of this process."""
        return jax.device_put(tree, self._sharding(REPLICATED))

    def by_position(self, tree: Any) -> Any:
        """Selects this process's part of arrays `[B, ...]` or `[P, ...]` and divides it
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
    `draws_in_parts`; its size is rounded up to a multiple of the number of parts. Other
    batches are computed on one device, by each process separately.

    Args:
        size: positions in the batch, at least 1.
        players: the players that choose in it.
        division: how large batches are divided.
    """
    num_parts = division.num_parts
    in_parts = all(getattr(player, "draws_in_parts", False) for player in players)
    if num_parts == 1 or size < MIN_DIVIDED or not in_parts:
        return BatchLayout(size)
    local = jax.local_devices()
    devices = local if division.devices is None else division.devices
    num_processes = len({device.process_index for device in devices})
    if num_parts % num_processes:
        raise ValueError(
            f"num_parts must be a multiple of the {num_processes} processes: "
            f"{num_parts}"
        )
    own = [device for device in devices if device in local]
    parts = num_parts // num_processes
    number = max(n for n in range(1, len(own) + 1) if parts % n == 0)
    return BatchLayout(
        size=division.padded(size),
        num_parts=num_parts,
        mesh=None if number == 1 else mesh_of(own[:number]),
        num_processes=num_processes,
    )
