"""How the tree lies in memory while it grows, and how it is shown outside.

The nodes of all games lie in one row: node `n` of game `b` is entry `b * N + n`. What
is read and written together of a node is one record of a table: see `packing`. What
`mctx.Tree` stores at the edge to a child (reward, discount, value) lies here once, at
the child; the edges keep what a selection reads.

To write nothing for some rows, their index is the one after the last entry (`nowhere`),
which a scatter with `mode="drop"` ignores.
"""

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx
from flax import struct

from azjax.search.packing import Table
from azjax.search.solver import WIN, is_proven, move_bounds
from azjax.search.types import RootFnOutput, Tree

UNVISITED = mctx.Tree.UNVISITED
NO_PARENT = mctx.Tree.NO_PARENT


class Statistics(NamedTuple):
    """What backups change in R nodes.

    A link is the entry of a child from which a simulation may go on, -1 where there is
    no child, and `-2 - entry` for a child from which no simulation may go on.

    visits: `[R]` int32; simulations that ended at or passed the node, and 1 for the
        evaluation of a root; 0 where unused.
    value: `[R]` float32; mean of the values backed up.
    next_action: `[R]` int32; what the interior selection chooses here now.
    next_link: `[R]` int32; the link of that action.
    link: `[R, A]` int32.
    edge_visits: `[R, A]` int32; the children's visits.
    qvalue: `[R, A]` float32; reward + discount * value of the children.
    """

    visits: jax.Array
    value: jax.Array
    next_action: jax.Array
    next_link: jax.Array
    link: jax.Array
    edge_visits: jax.Array
    qvalue: jax.Array


class Evaluation(NamedTuple):
    """What is stored of R nodes when the model evaluates them.

    raw_value: `[R]` float32; the network's value.
    reward: `[R]` float32; of the move that leads here, for the player who made it.
    discount: `[R]` float32; between that player's value and the node's; 0 at the end of
        a game.
    parent: `[R]` int32; an entry.
    action: `[R]` int32; from the parent.
    prior: `[R, A]`; prior logits; float32, or uint16 that holds bfloat16.
    """

    raw_value: jax.Array
    reward: jax.Array
    discount: jax.Array
    parent: jax.Array
    action: jax.Array
    prior: jax.Array


class Rows(NamedTuple):
    """Some nodes.

    entry: `[R]` int32; which.
    statistics, evaluation: theirs.
    """

    entry: jax.Array
    statistics: Statistics
    evaluation: Evaluation


@struct.dataclass
class Nodes:
    """The trees of B games with N nodes each, `M = B * N`.

    statistics: M `Statistics`.
    evaluation: M `Evaluation`.
    state: M embeddings.
    pending: `[M]` int32; visits whose value is not known yet; None where a step
        searches one leaf.
    lower, upper: `[M]` int16; proven bounds of the result, see `proofs`; None where
        nothing is proved.
    """

    statistics: Table
    evaluation: Table
    state: Table
    pending: jax.Array | None
    lower: jax.Array | None
    upper: jax.Array | None

    @property
    def size(self) -> int:
        """M."""
        return self.statistics.size

    def rows(self, entry: jax.Array) -> Rows:
        """Returns some nodes."""
        return Rows(entry, self.statistics[entry], self.evaluation[entry])


@chex.dataclass(frozen=True)
class ProvenTree(Tree):
    """A tree with what was proved of its nodes.

    lower, upper: `[B, N]` int16; bounds of the result for the player to move there,
        see `azjax.search.solver`.
    """

    lower: Any
    upper: Any


def root_bounds(tree: ProvenTree) -> tuple[jax.Array, jax.Array]:
    """Returns `[B, A]` int16 bounds of the root's moves."""
    legal = ~tree.root_invalid_actions.astype(bool)
    children = tree.children_index[:, tree.ROOT_INDEX]
    return jax.vmap(move_bounds)(tree.lower, tree.upper, children, legal)


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
    statistics = Statistics(
        visits=jnp.zeros(size, jnp.int32),
        value=zeros,
        next_action=jnp.zeros(size, jnp.int32),
        next_link=none,
        link=jnp.full((size, num_actions), UNVISITED, jnp.int32),
        edge_visits=jnp.zeros((size, num_actions), jnp.int32),
        qvalue=by_action,
    )
    prior = to_prior(by_action, _STORED[jnp.dtype(prior_dtype)])
    unknown = jnp.full(size, WIN, jnp.int16) if use_solver else None
    return Nodes(
        statistics=Table.of(statistics),
        evaluation=Table.of(Evaluation(zeros, zeros, zeros, none, none, prior)),
        state=Table.of(
            jax.tree.map(
                lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), embedding
            )
        ),
        pending=None,
        lower=None if unknown is None else -unknown,
        upper=unknown,
    )


def set_roots(nodes: Nodes, root: RootFnOutput, num_nodes: int) -> Nodes:
    """Gives every tree its root's prior, and the rest of the root to the empty ones."""
    entry = jnp.arange(root.value.shape[0], dtype=jnp.int32) * num_nodes
    _, statistics, evaluation = nodes.rows(entry)
    is_empty = statistics.visits == 0
    statistics = statistics._replace(
        visits=jnp.where(is_empty, 1, statistics.visits),
        value=jnp.where(is_empty, root.value, statistics.value),
    )
    evaluation = evaluation._replace(
        raw_value=jnp.where(is_empty, root.value, evaluation.raw_value),
        prior=to_prior(root.prior_logits, evaluation.prior.dtype),
    )
    fresh = jnp.where(is_empty, entry, nodes.size)
    return dataclasses.replace(
        nodes,
        statistics=nodes.statistics.set(entry, statistics),
        evaluation=nodes.evaluation.set(entry, evaluation),
        state=nodes.state.set(fresh, root.embedding),
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


def link_to(entry: jax.Array, goes_on: jax.Array) -> jax.Array:
    """Returns links to some nodes; `goes_on`: whether simulations may go on there."""
    return jnp.where(goes_on, entry, -2 - entry)


def linked(link: jax.Array) -> jax.Array:
    """Returns the entries that links lead to, -1 where there is no child."""
    return jnp.where(link < -1, -2 - link, link)


def link_of(statistics: Statistics, action: jax.Array) -> jax.Array:
    """Returns `[R]` links of one action each."""
    chosen = jnp.arange(statistics.link.shape[-1]) == action[:, None]
    # A sum of one number: on a TPU it is much faster than a gather of single numbers.
    return jnp.where(chosen, statistics.link, 0).sum(axis=-1, dtype=jnp.int32)


def from_tree(tree: Tree) -> Nodes:
    """Returns the nodes of a tree; what is chosen in them is not filled in."""
    batch_size, num_nodes, _ = tree.children_index.shape
    size = batch_size * num_nodes
    base = jnp.arange(batch_size, dtype=jnp.int32)[:, None] * num_nodes

    def flat(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(size, *leaf.shape[2:])

    parent = flat(jnp.where(tree.parents >= 0, tree.parents + base, NO_PARENT))
    action = flat(tree.action_from_parent)
    evaluation = Evaluation(
        raw_value=flat(tree.raw_values),
        reward=jnp.where(parent >= 0, flat(tree.children_rewards)[parent, action], 0),
        discount=jnp.where(
            parent >= 0, flat(tree.children_discounts)[parent, action], 0
        ),
        parent=parent,
        action=action,
        prior=to_prior(
            flat(tree.children_prior_logits).astype(jnp.float32),
            _STORED[tree.children_prior_logits.dtype],
        ),
    )
    child = tree.children_index
    child = flat(jnp.where(child >= 0, child + base[..., None], UNVISITED))
    goes_on = evaluation.discount != 0
    lower, upper = None, None
    if isinstance(tree, ProvenTree):
        lower, upper = flat(tree.lower), flat(tree.upper)
        goes_on &= ~is_proven(lower, upper)
    statistics = Statistics(
        visits=flat(tree.node_visits),
        value=flat(tree.node_values),
        next_action=jnp.zeros(size, jnp.int32),
        next_link=jnp.full(size, UNVISITED, jnp.int32),
        link=jnp.where(child >= 0, link_to(child, goes_on[child]), UNVISITED),
        edge_visits=flat(tree.children_visits),
        qvalue=flat(
            tree.children_rewards + tree.children_discounts * tree.children_values
        ),
    )
    return Nodes(
        statistics=Table.of(statistics),
        evaluation=Table.of(evaluation),
        state=Table.of(jax.tree.map(flat, tree.embeddings)),
        pending=None,
        lower=lower,
        upper=upper,
    )


def to_tree(
    nodes: Nodes, num_nodes: int, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns the tree that the nodes are."""
    statistics, evaluation = nodes.statistics.all(), nodes.evaluation.all()
    child = linked(statistics.link)
    at_edge = (
        jnp.where(evaluation.parent >= 0, evaluation.parent, nodes.size),
        evaluation.action,
    )

    def to_edges(values: jax.Array) -> jax.Array:
        """Returns `[B, N, A]` numbers of the children, 0 where there is none."""
        if not nodes.statistics.is_packed:
            return batch(jnp.where(child >= 0, values[jnp.maximum(child, 0)], 0))
        # An accelerator gathers all M * A numbers even where only the roots' are used.
        edges = jnp.zeros(child.shape, values.dtype)
        return batch(edges.at[at_edge].set(values, mode="drop"))

    def batch(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(-1, num_nodes, *leaf.shape[1:])

    def index(entry: jax.Array) -> jax.Array:
        return batch(jnp.where(entry >= 0, entry % num_nodes, entry))

    fields = {
        "node_visits": batch(statistics.visits),
        "raw_values": batch(evaluation.raw_value),
        "node_values": batch(statistics.value),
        "parents": index(evaluation.parent),
        "action_from_parent": batch(evaluation.action),
        "children_index": index(child),
        "children_prior_logits": batch(from_prior(evaluation.prior)),
        "children_values": to_edges(statistics.value),
        "children_visits": batch(statistics.edge_visits),
        "children_rewards": to_edges(evaluation.reward),
        "children_discounts": to_edges(evaluation.discount),
        "embeddings": jax.tree.map(batch, nodes.state.all()),
        "root_invalid_actions": root_invalid_actions,
        "extra_data": extra_data,
    }
    if nodes.lower is None or nodes.upper is None:
        return mctx.Tree(**fields)
    return ProvenTree(**fields, lower=batch(nodes.lower), upper=batch(nodes.upper))


def may_go_on(nodes: Nodes, discount: jax.Array, entry: jax.Array) -> jax.Array:
    """Returns whether there is anything to search behind some nodes: not behind the
    end of the game, a leaf whose value is yet to come, or a proven result."""
    goes_on = discount != 0
    if nodes.lower is not None and nodes.upper is not None:
        goes_on &= ~is_proven(nodes.lower[entry], nodes.upper[entry])
    return goes_on


def is_awaited(nodes: Nodes, entry: jax.Array) -> jax.Array:
    """Returns whether some nodes are leaves whose value is yet to come."""
    if nodes.pending is None:
        return jnp.zeros(entry.shape, bool)
    visits = nodes.statistics[entry].visits
    return (visits > 0) & (visits == nodes.pending[entry])
