"""How the tree lies in memory while it grows, and how it is shown outside.

The nodes of all games lie in one row: node `n` of game `b` is entry `b * N + n`, so
that gathers and scatters have one index and touch nothing but the nodes they name.
What `mctx.Tree` stores at the edge to a child (reward, discount, value) lies here once,
at the child; the edges keep what a selection reads.

To write nothing for some rows, their index is the one after the last entry (`nowhere`),
which a scatter with `mode="drop"` ignores.
"""

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
import mctx
from flax import struct

from azjax.search.proofs import WIN, is_proven, move_bounds
from azjax.search.records import RootFnOutput, Tree

UNVISITED = mctx.Tree.UNVISITED
NO_PARENT = mctx.Tree.NO_PARENT
# How many visits a node has for each further search that may be below it at once:
# measured on solved positions of Connect Four with eight leaves a step.
_VISITS_PER_LEAF = 8


@struct.dataclass
class Nodes:
    """The trees of B games with N nodes each, `M = B * N`.

    Children and parents are entries, not indices within a game.

    visits: `[M]` int32; simulations that ended at or passed the node, and 1 for the
        evaluation of a root; 0 where unused.
    pending: `[M]` int32; those of them whose value is not known yet; None where a step
        searches one leaf.
    value: `[M]` float32; mean of the values backed up.
    raw_value: `[M]` float32; the network's value.
    reward: `[M]` float32; of the move that leads here, for the player who made it.
    discount: `[M]` float32; between that player's value and the node's.
    parent: `[M]` int32.
    action: `[M]` int32; from the parent.
    next_action: `[M]` int32; what the interior selection chooses here now.
    next_node: `[M]` int32; the child there, if a simulation may go on from it.
    lower, upper: `[M]` int16; proven bounds of the result, see `proofs`; None where
        nothing is proved.
    prior: `[M, A]`; prior logits; float32, or uint16 that holds bfloat16, since CPUs
        copy all of a bfloat16 array to change a part of it.
    child: `[M, A]` int32.
    edge_visits: `[M, A]` int32; the children's visits.
    qvalue: `[M, A]` float32; reward + discount * value of the children.
    embedding: leaves `[M, ...]`; the states.
    """

    visits: jax.Array
    pending: jax.Array | None
    value: jax.Array
    raw_value: jax.Array
    reward: jax.Array
    discount: jax.Array
    parent: jax.Array
    action: jax.Array
    next_action: jax.Array
    next_node: jax.Array
    lower: jax.Array | None
    upper: jax.Array | None
    prior: jax.Array
    child: jax.Array
    edge_visits: jax.Array
    qvalue: jax.Array
    embedding: Any


@chex.dataclass(frozen=True)
class ProvenTree(Tree):
    """A tree with what was proved of its nodes.

    lower, upper: `[B, N]` int16; bounds of the result for the player to move there,
        see `azjax.search.proofs`.
    """

    lower: Any
    upper: Any


def root_bounds(tree: ProvenTree) -> tuple[jax.Array, jax.Array]:
    """Returns `[B, A]` int16 bounds of the root's moves."""
    legal = ~tree.root_invalid_actions.astype(bool)
    children = tree.children_index[:, tree.ROOT_INDEX]
    return jax.vmap(move_bounds)(tree.lower, tree.upper, children, legal)


@chex.dataclass(frozen=True)
class _OneNode(Tree):
    """One node, at index 0, as a selection function sees it."""

    node_qvalues: Any  # [1, A]

    @property
    def num_actions(self):
        """Returns A."""
        return self.node_qvalues.shape[-1]

    def qvalues(self, indices):
        """Returns the Q-values; kept, because they cost A gathers to compute."""
        return self.node_qvalues[indices]


def empty_nodes(
    embedding: Any,
    num_actions: int,
    num_nodes: int,
    *,
    prior_dtype: Any = jnp.float32,
    use_solver: bool = False,
) -> Nodes:
    """Returns B trees without any node, not even a root.

    Args:
        embedding: leaves `[B, ...]`; only their shapes and dtypes matter.
        num_actions: A.
        num_nodes: N.
        prior_dtype: of the prior logits.
        use_solver: whether to make room for proven bounds.
    """
    size = jax.tree.leaves(embedding)[0].shape[0] * num_nodes
    none = jnp.full(size, NO_PARENT, jnp.int32)
    zeros = jnp.zeros(size, jnp.float32)
    by_action = jnp.zeros((size, num_actions), jnp.float32)
    unknown = jnp.full(size, WIN, jnp.int16) if use_solver else None
    return Nodes(
        visits=jnp.zeros(size, jnp.int32),
        pending=None,
        value=zeros,
        raw_value=zeros,
        reward=zeros,
        discount=zeros,
        parent=none,
        action=none,
        next_action=jnp.zeros(size, jnp.int32),
        next_node=none,
        lower=None if unknown is None else -unknown,
        upper=unknown,
        prior=to_prior(by_action, _STORED[jnp.dtype(prior_dtype)]),
        child=jnp.full((size, num_actions), UNVISITED, jnp.int32),
        edge_visits=jnp.zeros((size, num_actions), jnp.int32),
        qvalue=by_action,
        embedding=jax.tree.map(
            lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), embedding
        ),
    )


def set_roots(nodes: Nodes, root: RootFnOutput, num_nodes: int) -> Nodes:
    """Gives every tree its root's prior, and the rest of the root to the empty ones."""
    batch_size = root.value.shape[0]
    entry = jnp.arange(batch_size) * num_nodes
    fresh = jnp.where(nodes.visits[entry] == 0, entry, nodes.visits.size)

    def put(leaf: jax.Array, new: Any) -> jax.Array:
        return leaf.at[fresh].set(jnp.asarray(new, leaf.dtype), mode="drop")

    return dataclasses.replace(
        nodes,
        prior=nodes.prior.at[entry].set(to_prior(root.prior_logits, nodes.prior.dtype)),
        visits=put(nodes.visits, 1),
        value=put(nodes.value, root.value),
        raw_value=put(nodes.raw_value, root.value),
        embedding=jax.tree.map(put, nodes.embedding, root.embedding),
    )


_STORED = {
    jnp.dtype(jnp.float32): jnp.dtype(jnp.float32),
    jnp.dtype(jnp.bfloat16): jnp.dtype(jnp.uint16),
}


def to_prior(logits: jax.Array, stored: Any) -> jax.Array:
    """Returns logits as they are stored; the lowest number remains finite."""
    if stored == jnp.float32:
        return logits.astype(jnp.float32)
    low = jnp.maximum(logits, float(jnp.finfo(jnp.bfloat16).min)).astype(jnp.bfloat16)
    return jax.lax.bitcast_convert_type(low, jnp.uint16)


def from_prior(prior: jax.Array) -> jax.Array:
    """Returns stored logits as they are meant, in float32 or bfloat16."""
    if prior.dtype == jnp.float32:
        return prior
    return jax.lax.bitcast_convert_type(prior, jnp.bfloat16)


def is_legal(prior: jax.Array) -> jax.Array:
    """Returns which actions are legal: the others have the lowest prior logits."""
    return prior > jnp.finfo(jnp.float32).min / 2


def from_tree(tree: Tree) -> Nodes:
    """Returns the nodes of a tree; what is chosen in them is not filled in."""
    batch_size, num_nodes, _ = tree.children_index.shape
    size = batch_size * num_nodes
    base = jnp.arange(batch_size, dtype=jnp.int32)[:, None] * num_nodes

    def flat(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(size, *leaf.shape[2:])

    parent = flat(jnp.where(tree.parents >= 0, tree.parents + base, NO_PARENT))
    action = flat(tree.action_from_parent)
    child = tree.children_index
    is_proven = isinstance(tree, ProvenTree)
    return Nodes(
        visits=flat(tree.node_visits),
        pending=None,
        value=flat(tree.node_values),
        raw_value=flat(tree.raw_values),
        reward=jnp.where(parent >= 0, flat(tree.children_rewards)[parent, action], 0),
        discount=jnp.where(
            parent >= 0, flat(tree.children_discounts)[parent, action], 0
        ),
        parent=parent,
        action=action,
        next_action=jnp.zeros(size, jnp.int32),
        next_node=jnp.full(size, NO_PARENT, jnp.int32),
        lower=flat(tree.lower) if is_proven else None,
        upper=flat(tree.upper) if is_proven else None,
        prior=to_prior(
            flat(tree.children_prior_logits).astype(jnp.float32),
            _STORED[tree.children_prior_logits.dtype],
        ),
        child=flat(jnp.where(child >= 0, child + base[..., None], UNVISITED)),
        edge_visits=flat(tree.children_visits),
        qvalue=flat(
            tree.children_rewards + tree.children_discounts * tree.children_values
        ),
        embedding=jax.tree.map(flat, tree.embeddings),
    )


def to_tree(
    nodes: Nodes, num_nodes: int, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns the tree that the nodes are."""

    def batch(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(-1, num_nodes, *leaf.shape[1:])

    def index(entry: jax.Array) -> jax.Array:
        return batch(jnp.where(entry >= 0, entry % num_nodes, entry))

    fields = {
        "node_visits": batch(nodes.visits),
        "raw_values": batch(nodes.raw_value),
        "node_values": batch(nodes.value),
        "parents": index(nodes.parent),
        "action_from_parent": batch(nodes.action),
        "children_index": index(nodes.child),
        "children_prior_logits": batch(from_prior(nodes.prior)),
        "children_values": batch(_of_children(nodes.value, nodes.child)),
        "children_visits": batch(nodes.edge_visits),
        "children_rewards": batch(_of_children(nodes.reward, nodes.child)),
        "children_discounts": batch(_of_children(nodes.discount, nodes.child)),
        "embeddings": jax.tree.map(batch, nodes.embedding),
        "root_invalid_actions": root_invalid_actions,
        "extra_data": extra_data,
    }
    if nodes.lower is None or nodes.upper is None:
        return mctx.Tree(**fields)
    return ProvenTree(**fields, lower=batch(nodes.lower), upper=batch(nodes.upper))


def one_node_trees(
    nodes: Nodes, entry: jax.Array, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns R trees with one node each, to select an action by.

    `parents`, `children_index` and `embeddings`, which lead to other nodes, are None.

    Args:
        nodes: the trees.
        entry: `[R]` int32; which nodes.
        root_invalid_actions: `[R, A]`; of their games.
        extra_data: leaves `[R, ...]`; of their games.
    """
    child = nodes.child[entry]
    prior = from_prior(nodes.prior[entry]).astype(jnp.float32)
    lowest = jnp.finfo(jnp.float32).min
    barred = _is_barred(nodes, entry, child, is_legal(prior))
    prior = jnp.where(barred, lowest, prior)
    fields = {
        "node_visits": nodes.visits[entry],
        "raw_values": nodes.raw_value[entry],
        "node_values": nodes.value[entry],
        "action_from_parent": nodes.action[entry],
        "children_prior_logits": prior,
        "children_values": _of_children(nodes.value, child),
        "children_visits": nodes.edge_visits[entry],
        "children_rewards": _of_children(nodes.reward, child),
        "children_discounts": _of_children(nodes.discount, child),
        "node_qvalues": nodes.qvalue[entry],
    }
    return _OneNode(
        **{name: leaf[:, None] for name, leaf in fields.items()},
        parents=None,
        children_index=None,
        embeddings=None,
        root_invalid_actions=root_invalid_actions,
        extra_data=extra_data,
    )


def may_go_on(nodes: Nodes, entry: jax.Array) -> jax.Array:
    """Returns whether there is anything to search behind some nodes: not behind the
    end of the game, a leaf whose value is yet to come, or a proven result."""
    goes_on = nodes.discount[entry] != 0
    if nodes.lower is not None and nodes.upper is not None:
        goes_on &= ~is_proven(nodes.lower[entry], nodes.upper[entry])
    return goes_on


def follow(nodes: Nodes, entry: jax.Array, action: jax.Array) -> jax.Array:
    """Returns where a simulation goes on after an action, -1 where it ends with it."""
    child = nodes.child[entry, action]
    goes_on = (child >= 0) & may_go_on(nodes, jnp.maximum(child, 0))
    return jnp.where(goes_on, child, -1)


def is_awaited(nodes: Nodes, entry: jax.Array) -> jax.Array:
    """Returns whether some nodes are leaves whose value is yet to come."""
    if nodes.pending is None:
        return jnp.zeros(entry.shape, bool)
    return (nodes.visits[entry] > 0) & (nodes.visits[entry] == nodes.pending[entry])


def _is_barred(
    nodes: Nodes, entry: jax.Array, child: jax.Array, legal: jax.Array
) -> jax.Array:
    """Returns `[R, A]` bool, the actions that are no use now while others are left:
    proven to lose, or taken by other searches of the same step.

    A node bears one search at a time, and one more for every `_VISITS_PER_LEAF`
    visits, lest poor moves be searched for want of better ones. The root's selection
    spreads searches by itself; it only has to leave the leaves.
    """
    barred = jnp.zeros(child.shape, bool)
    if nodes.pending is not None:
        after = jnp.maximum(child, 0)
        known = nodes.visits[after] - nodes.pending[after]
        is_root = nodes.parent[entry][:, None] < 0
        bears = known // _VISITS_PER_LEAF
        is_taken = (nodes.pending[after] > bears) & (~is_root | (known == 0))
        barred = (child >= 0) & is_taken
    if nodes.lower is not None and nodes.upper is not None:
        barred |= move_bounds(nodes.lower, nodes.upper, child, legal)[1] < 0
    return barred & (legal & ~barred).any(axis=-1, keepdims=True)


def _of_children(values: jax.Array, child: jax.Array) -> jax.Array:
    return jnp.where(child >= 0, values[jnp.maximum(child, 0)], 0)
