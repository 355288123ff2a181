"""The paths of one simulation through the trees of all games."""

import jax
import jax.numpy as jnp
from flax import struct

from azjax.devices import target_platform
from azjax.search.packing import Packing

PORTION = 2  # listed nodes updated at once, per game of the batch
_LEVEL_WORDS = 2048  # of a game's rows updated at once on a GPU
_MAX_LEVELS = 48  # the time to compile grows with them
_TPU_LEVELS = 8  # rows of a TPU's tile


@struct.dataclass
class Paths:
    """One simulation in each of B games, and scratch memory of a CPU's backup.

    node: `[D + 1, B]` int32 or longer; entries from the root to the leaf's parent, by
        depth.
    length: `[B]` int32; edges from the root to the leaf.
    parent, action, leaf: `[B]` int32; the last edge of the path.
    is_new: `[B]` bool; whether the leaf is a new node.
    is_terminal: `[B]` bool; whether the leaf is an existing terminal or proven node. An
        existing leaf that is neither was reached at `max_depth` and is evaluated again,
        as in mctx; with chance it keeps its evaluation.
    is_valid: `[B]` bool; whether the simulation is made. It is not where the game's
        simulations are used up or its tree is full.
    row: `[R]` int32; entries to update, game by game, each from depth 1 to the leaf; a
        leaf is stored as `-1 - entry`. On accelerators, row and backup_value are empty.
    backup_value: `[R]` float32; the values backed up to these entries.
    max_depth: D, the longest path (edges).
    levels: levels of the trees that a descent goes down at once, and that an
        accelerator's backup updates at once; at most D + 1.
    """

    node: jax.Array
    length: jax.Array
    parent: jax.Array
    action: jax.Array
    leaf: jax.Array
    is_new: jax.Array
    is_terminal: jax.Array
    is_valid: jax.Array
    row: jax.Array
    backup_value: jax.Array
    max_depth: int = struct.field(pytree_node=False)
    levels: int = struct.field(pytree_node=False)

    def entry(self, depth: int | jax.Array) -> jax.Array:
        """Returns `[B]` int32, the entries at a depth up to the leaf's."""
        return jnp.where(self.length == depth, self.leaf, self.node[depth])


def empty_paths(base: jax.Array, max_depth: int, packing: Packing | None) -> Paths:
    """Allocates paths from the roots, the entries `base`.

    Args:
        base: `[B]` int32.
        max_depth: D.
        packing: of the nodes' statistics; None: they are not packed.
    """
    batch_size = base.size
    levels, rows = 1, batch_size * (max_depth + PORTION)
    if packing is not None:
        levels, rows = max(min(_LEVEL_WORDS // packing.num_words, _MAX_LEVELS), 2), 0
        if target_platform() == "tpu":
            levels = _TPU_LEVELS
        levels = min(levels, max_depth + 1)
    zeros, false = jnp.zeros(batch_size, jnp.int32), jnp.zeros(batch_size, bool)
    num_levels = 1 + -(-(max_depth + 1) // levels) * levels
    return Paths(
        node=jnp.broadcast_to(base, (num_levels, batch_size)),
        length=zeros,
        parent=zeros,
        action=zeros,
        leaf=zeros,
        is_new=false,
        is_terminal=false,
        is_valid=false,
        row=jnp.zeros(rows, jnp.int32),
        backup_value=jnp.zeros(rows, jnp.float32),
        max_depth=max_depth,
        levels=levels,
    )
