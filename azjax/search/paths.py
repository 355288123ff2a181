"""The ways that simulations took through the trees."""

import dataclasses

import jax
import jax.numpy as jnp
from flax import struct

from azjax.search import solver
from azjax.search.nodes import Nodes

# Listed nodes that are updated at once, for each game of the batch.
PORTION = 2


@struct.dataclass
class Paths:
    """The ways of the simulations of one step, `K` attempts in each game, and scratch
    memory that lives from step to step.

    node: `[K, D + 1, B]` int32; the entries from the root to the leaf's parent.
    length: `[K, B]` int32; moves from the root to the leaf.
    parent, action, leaf: `[K, B]` int32; the last move of each.
    is_new: `[K, B]` bool; whether the leaf was not in the tree before.
    is_over: `[K, B]` bool; whether the leaf was, and needs no further evaluation: it
        ends the game, its result is proven or its value is yet to come.
    counts: `[K, B]` bool; whether the attempt is a simulation: it is none if it came
        upon another attempt's leaf, or found no room for a new one.
    row: `[R]` int32, gain: `[R]` float32; entries to update and the values that reach
        them, game by game, from the one below the root to the leaf, which is stored as
        `-1 - entry`.
    root_gain: `[B]` float32; the values that reach the roots.
    """

    node: jax.Array
    length: jax.Array
    parent: jax.Array
    action: jax.Array
    leaf: jax.Array
    is_new: jax.Array
    is_over: jax.Array
    counts: jax.Array
    row: jax.Array
    gain: jax.Array
    root_gain: jax.Array

    def entry(self, attempt: int | jax.Array, depth: int | jax.Array) -> jax.Array:
        """Returns `[B]` int32, the entries at a depth up to the leaf's."""
        is_leaf = self.length[attempt] == depth
        return jnp.where(is_leaf, self.leaf[attempt], self.node[attempt, depth])

    def row_ends(self, attempt: int | jax.Array) -> jax.Array:
        """Returns `[B]` int32, where the rows of each game end."""
        length = jnp.where(self.counts[attempt], self.length[attempt], 0)
        return jnp.cumsum(length, dtype=jnp.int32)


def empty_paths(base: jax.Array, num_attempts: int, max_depth: int) -> Paths:
    """Returns room for a step's paths from the roots, the entries `base`."""
    batch_size = base.size
    shape = (num_attempts, batch_size)
    rows = batch_size * (max_depth + PORTION)
    zeros, false = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, bool)
    return Paths(
        node=jnp.broadcast_to(base, (num_attempts, max_depth + 1, batch_size)),
        length=zeros,
        parent=zeros,
        action=zeros,
        leaf=zeros,
        is_new=false,
        is_over=false,
        counts=false,
        row=jnp.zeros(rows, jnp.int32),
        gain=jnp.zeros(rows, jnp.float32),
        root_gain=jnp.zeros(batch_size, jnp.float32),
    )


def list_rows(nodes: Nodes, paths: Paths, attempt: int | jax.Array) -> Paths:
    """Lists the nodes of an attempt's paths, with the values that reach them."""
    length = paths.length[attempt]
    counts = paths.counts[attempt]
    # The root comes before depth 1, the first that is listed.
    start = paths.row_ends(attempt) - length - 1
    nowhere = paths.row.size

    def go_up(state):
        depth, value, row, gain = state
        entry = paths.entry(attempt, depth)
        evaluation = nodes.evaluation[entry]
        is_on_path = depth <= length
        if nodes.lower is not None and nodes.upper is not None:
            is_decided = solver.is_proven(nodes.lower[entry], nodes.upper[entry])
            is_decided &= evaluation.discount != 0
            exact = nodes.statistics[entry].value
            value = jnp.where(is_on_path & is_decided, exact, value)
        at = jnp.where(is_on_path & counts, start + depth, nowhere)
        listed = jnp.where(depth == length, -1 - entry, entry)
        row = row.at[at].set(listed, mode="drop")
        gain = gain.at[at].set(value, mode="drop")
        above = evaluation.reward + evaluation.discount * value
        return depth - 1, jnp.where(is_on_path, above, value), row, gain

    leaf_value = nodes.evaluation[paths.leaf[attempt]].raw_value
    _, root_gain, row, gain = jax.lax.while_loop(
        lambda state: state[0] > 0,
        go_up,
        (length.max(), leaf_value, paths.row, paths.gain),
    )
    return dataclasses.replace(paths, row=row, gain=gain, root_gain=root_gain)
