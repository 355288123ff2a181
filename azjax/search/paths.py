"""The paths of one simulation through the trees of all games."""

import jax
import jax.numpy as jnp
from flax import struct

PORTION = 2  # listed nodes updated at once, per game of the batch


@struct.dataclass
class Paths:
    """One simulation in each of B games, and scratch memory of the backup.

    node: `[D + 1, B]` int32; entries from the root to the leaf's parent, by depth.
    length: `[B]` int32; moves from the root to the leaf.
    parent, action, leaf: `[B]` int32; the last move of the path.
    is_new: `[B]` bool; whether the leaf is a new node.
    is_terminal: `[B]` bool; whether the leaf is an existing terminal or proven node. An
        existing leaf that is neither was reached at `max_depth` and is evaluated again,
        as in mctx.
    is_valid: `[B]` bool; whether the simulation is made. It is not where the game's
        simulations are used up or its tree is full.
    row: `[R]` int32; entries to update, game by game, each from depth 1 to the leaf; a
        leaf is stored as `-1 - entry`.
    backup_value: `[R]` float32; the values backed up to these entries.
    root_backup_value: `[B]` float32; the values backed up to the roots.
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
    root_backup_value: jax.Array

    @property
    def max_depth(self) -> int:
        """D, the longest path (moves)."""
        return len(self.node) - 1

    def entry(self, depth: int | jax.Array) -> jax.Array:
        """Returns `[B]` int32, the entries at a depth up to the leaf's."""
        return jnp.where(self.length == depth, self.leaf, self.node[depth])


def empty_paths(base: jax.Array, max_depth: int) -> Paths:
    """Allocates paths from the roots, the entries `base`."""
    batch_size = base.size
    rows = batch_size * (max_depth + PORTION)
    zeros, false = jnp.zeros(batch_size, jnp.int32), jnp.zeros(batch_size, bool)
    return Paths(
        node=jnp.broadcast_to(base, (max_depth + 1, batch_size)),
        length=zeros,
        parent=zeros,
        action=zeros,
        leaf=zeros,
        is_new=false,
        is_terminal=false,
        is_valid=false,
        row=jnp.zeros(rows, jnp.int32),
        backup_value=jnp.zeros(rows, jnp.float32),
        root_backup_value=jnp.zeros(batch_size, jnp.float32),
    )
