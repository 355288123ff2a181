"""Storage of the search trees.

The nodes of all B trees lie in one flat array of `M = B * N` entries: node `n` of game
`b` is entry `b * N + n`. Numbers of a node that are read and written together form one
record of a table, see `packing`. `mctx.Tree` stores reward, discount and value of a
child at the edge; here they are stored once, at the child, and the edges store what a
selection reads.

The entry M is out of range: a scatter with `mode="drop"` ignores it.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
from flax import struct

from azjax.search.packing import Table
from azjax.search.score_bounds import Bounds, unknown_bounds
from azjax.search.types import RootFnOutput

UNVISITED = mctx.Tree.UNVISITED
NO_PARENT = mctx.Tree.NO_PARENT


class Statistics(NamedTuple):
    """Numbers of R nodes that backups change.

    A link is the entry of a child, -1 where there is no child, and `-2 - entry` for a
    child below which no simulation can continue (terminal or proven).

    visits: `[R]` int32; simulations through the node, and 1 for the evaluation of a
        root; 0 where unused.
    value: `[R]` float32; mean of the backed-up values; the exact value of a proven
        node; the model's value after an evaluation at `max_depth`.
    next_action: `[R]` int32; the action that the interior selection takes now.
    next_link: `[R]` int32; the link of that action.
    link: `[R, A]` int32.
    edge_visits: `[R, A]` int32; visits of the children.
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
    """Outputs of the model for R nodes; backups do not change them.

    raw_value: `[R]` float32; the network's value.
    reward: `[R]` float32; of the move that leads here, for the player who made it.
    discount: `[R]` float32; between that player's value and the node's; 0 where the
        game is over.
    parent: `[R]` int32; an entry.
    action: `[R]` int32; from the parent.
    prior: `[R, A]` float32; prior logits; of a chance node, the log-probabilities of
        its outcomes.
    is_chance: `[R]` bool; whether the node is a chance node; None without chance.
    """

    raw_value: jax.Array
    reward: jax.Array
    discount: jax.Array
    parent: jax.Array
    action: jax.Array
    prior: jax.Array
    is_chance: jax.Array | None = None


class Rows(NamedTuple):
    """R nodes; `[R]` may be several axes, such as `[levels, B]`.

    entry: `[R]` int32.
    statistics: `Statistics` of R nodes.
    evaluation: `Evaluation` of R nodes.
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
    bounds: proven bounds of M nodes; None without the solver.
    """

    statistics: Table
    evaluation: Table
    state: Table
    bounds: Bounds | None

    @property
    def size(self) -> int:
        """M, which is also the entry that is out of range."""
        return self.statistics.size

    def rows(self, entry: jax.Array) -> Rows:
        """Returns the nodes at some entries."""
        return Rows(entry, self.statistics[entry], self.evaluation[entry])


def num_new_nodes(num_simulations: int, has_chance: bool) -> int:
    """Returns the number of nodes that simulations make: one each, or with chance up to
    two, a chance node and the position after an outcome."""
    return num_simulations * (2 if has_chance else 1)


def empty_nodes(
    embedding: Any,
    num_actions: int,
    size: int,
    *,
    use_solver: bool = False,
    has_chance: bool = False,
) -> Nodes:
    """Returns trees without nodes.

    Args:
        embedding: leaves `[B, ...]`; only their shapes and dtypes are used.
        num_actions: A.
        size: M.
        use_solver: whether to allocate proven bounds.
        has_chance: whether there are chance nodes.
    """
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
    evaluation = Evaluation(zeros, zeros, zeros, none, none, by_action)
    if has_chance:
        evaluation = evaluation._replace(is_chance=jnp.zeros(size, bool))
    state = jax.tree.map(
        lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), embedding
    )
    return Nodes(
        statistics=Table.of(statistics),
        evaluation=Table.of(evaluation),
        state=Table.of(state),
        bounds=unknown_bounds(size) if use_solver else None,
    )


def set_roots(nodes: Nodes, root: RootFnOutput, num_nodes: int) -> Nodes:
    """Stores the prior of every root, and value and state of the roots of empty trees.

    Args:
        nodes: the trees.
        root: prior logits `[B, A]`, values `[B]`, embeddings `[B, ...]`.
        num_nodes: N.
    """
    entry = jnp.arange(root.value.shape[0], dtype=jnp.int32) * num_nodes
    _, statistics, evaluation = nodes.rows(entry)
    is_empty = statistics.visits == 0
    statistics = statistics._replace(
        visits=jnp.where(is_empty, 1, statistics.visits),
        value=jnp.where(is_empty, root.value, statistics.value),
    )
    evaluation = evaluation._replace(
        raw_value=jnp.where(is_empty, root.value, evaluation.raw_value),
        prior=root.prior_logits,
    )
    return dataclasses.replace(
        nodes,
        statistics=nodes.statistics.set(entry, statistics),
        evaluation=nodes.evaluation.set(entry, evaluation),
        state=nodes.state.set(jnp.where(is_empty, entry, nodes.size), root.embedding),
    )


def is_legal(prior: jax.Array) -> jax.Array:
    """Returns which actions are legal: illegal ones have the lowest prior logits."""
    return prior > jnp.finfo(jnp.float32).min / 2


def encode_link(entry: jax.Array, expands: jax.Array) -> jax.Array:
    """Returns links to nodes; `expands`: whether simulations continue there."""
    return jnp.where(expands, entry, -2 - entry)


def linked_entry(link: jax.Array) -> jax.Array:
    """Returns the entries of the children, -1 where there is none."""
    return jnp.where(link < -1, -2 - link, link)


def link_of_action(statistics: Statistics, action: jax.Array) -> jax.Array:
    """Returns `[R]` links of one action each."""
    chosen = jax.nn.one_hot(action, statistics.link.shape[-1], dtype=bool)
    # On a TPU a masked sum is much faster than a gather of single numbers.
    return jnp.where(chosen, statistics.link, 0).sum(axis=-1, dtype=jnp.int32)
