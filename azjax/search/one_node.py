"""One node as a tree: what a selection function sees."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.search.nodes import Nodes, Rows, from_prior, is_legal, linked
from azjax.search.solver import move_bounds
from azjax.search.types import Tree

# How many visits a node has for each further search that may be below it at once:
# measured on solved positions of Connect Four with eight leaves a step.
_VISITS_PER_LEAF = 8


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


def one_node_trees(
    nodes: Nodes, rows: Rows, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns R trees with one node each, to select an action by.

    `parents`, `children_index` and `embeddings`, which lead to other nodes, are None.

    Args:
        nodes: the trees.
        rows: which nodes; their edges may be newer than those in `nodes`.
        root_invalid_actions: `[R, A]`; of their games.
        extra_data: leaves `[R, ...]`; of their games.
    """
    _, statistics, evaluation = rows
    prior = from_prior(evaluation.prior).astype(jnp.float32)
    lowest = jnp.finfo(jnp.float32).min
    barred = _is_barred(nodes, rows, is_legal(prior))
    if barred is not None:
        prior = jnp.where(barred, lowest, prior)
    child = linked(statistics.link)

    def of_children(values: jax.Array) -> jax.Array:
        return jnp.where(child >= 0, values[jnp.maximum(child, 0)], 0)

    fields = {
        "node_visits": statistics.visits,
        "raw_values": evaluation.raw_value,
        "node_values": statistics.value,
        "action_from_parent": evaluation.action,
        "children_prior_logits": prior,
        "children_values": of_children(nodes.statistics.all().value),
        "children_visits": statistics.edge_visits,
        "children_rewards": of_children(nodes.evaluation.all().reward),
        "children_discounts": of_children(nodes.evaluation.all().discount),
        "node_qvalues": statistics.qvalue,
    }
    return _OneNode(
        **{name: leaf[:, None] for name, leaf in fields.items()},
        parents=None,
        children_index=None,
        embeddings=None,
        root_invalid_actions=root_invalid_actions,
        extra_data=extra_data,
    )


def _is_barred(nodes: Nodes, rows: Rows, legal: jax.Array) -> jax.Array | None:
    """Returns `[R, A]` bool, the actions that are no use now while others are left:
    proven to lose, or taken by other searches of the same step.

    A node bears one search at a time, and one more for every `_VISITS_PER_LEAF`
    visits, so that poor moves are not searched only because the better ones are taken.
    The root's selection spreads searches by itself; it only has to leave the leaves.
    None: none can be.
    """
    if nodes.pending is None and nodes.lower is None:
        return None
    child = linked(rows.statistics.link)
    barred = jnp.zeros(child.shape, bool)
    if nodes.pending is not None:
        pending = nodes.pending[jnp.maximum(child, 0)]
        known = rows.statistics.edge_visits - pending
        is_root = rows.evaluation.parent[:, None] < 0
        bears = known // _VISITS_PER_LEAF
        is_taken = (pending > bears) & (~is_root | (known == 0))
        barred = (child >= 0) & is_taken
    if nodes.lower is not None and nodes.upper is not None:
        barred |= move_bounds(nodes.lower, nodes.upper, child, legal)[1] < 0
    return barred & (legal & ~barred).any(axis=-1, keepdims=True)
