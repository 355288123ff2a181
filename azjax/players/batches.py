"""Large batches of positions, divided among the devices of this process.

A large batch has `NUM_PARTS` equal parts, each of which draws with a key of its own, as
in `azjax.search.keys`. A device has one or several of them: the draws do not depend on
the number of devices, and the choices only through rounding.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from azjax.devices import DIVIDED, REPLICATED, mesh_of

NUM_PARTS = 8
MIN_DIVIDED = 64  # positions; a smaller batch has one part, on one device


class BatchLayout(NamedTuple):
    """How a batch of B positions is divided.

    size: B.
    num_parts: P.
    mesh: the devices, along one axis; None for one device.
    """

    size: int
    num_parts: int = 1
    mesh: Mesh | None = None

    def keys(self, rng_key: jax.Array) -> jax.Array:
        """Returns one key, or `[P]` keys for several parts; `rng_key` is consumed."""
        if self.num_parts == 1:
            return rng_key
        return self.by_position(jax.random.split(rng_key, self.num_parts))

    def replicated(self, tree: Any) -> Any:
        """Returns arrays, each of them whole on every device."""
        return jax.device_put(tree, self._sharding(REPLICATED))

    def by_position(self, tree: Any) -> Any:
        """Returns arrays `[B, ...]` or `[P, ...]`, divided among the devices."""
        return jax.device_put(tree, self._sharding(DIVIDED))

    def _sharding(self, spec: PartitionSpec) -> NamedSharding | None:
        return None if self.mesh is None else NamedSharding(self.mesh, spec)


def batch_layout(
    size: int, players: Sequence[Any], devices: Sequence[Any] | None = None
) -> BatchLayout:
    """Returns the layout of batches for compiled players.

    A batch of `MIN_DIVIDED` positions or more for players that all have
    `draws_in_parts` has `NUM_PARTS` parts, and its size is rounded up to a multiple of
    that.

    Args:
        size: of the batch, at least 1.
        players: that choose in it.
        devices: as many of them are used as divide the parts; by default those of this
            process.
    """
    in_parts = all(getattr(player, "draws_in_parts", False) for player in players)
    if size < MIN_DIVIDED or not in_parts:
        return BatchLayout(size)
    devices = jax.local_devices() if devices is None else devices
    number = max(n for n in range(1, len(devices) + 1) if NUM_PARTS % n == 0)
    mesh = None if number == 1 else mesh_of(devices[:number])
    return BatchLayout(-(-size // NUM_PARTS) * NUM_PARTS, NUM_PARTS, mesh)
