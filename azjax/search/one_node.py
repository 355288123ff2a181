"""Trees of one node each: the input of a selection function."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.search.nodes import Nodes, Rows, linked_entry
from azjax.search.solver import losing_actions
from azjax.search.types import Tree


@chex.dataclass(frozen=True)
class _OneNode(Tree):
    """One node, at index 0."""

    node_qvalues: Any  # [1, A]

    @property
    def num_actions(self):
        """A."""
        return self.node_qvalues.shape[-1]

    def qvalues(self, indices):
        """Returns the stored Q-values; computing them would take A gathers."""
        return self.node_qvalues[indices]


def one_node_trees(
    nodes: Nodes, rows: Rows, root_invalid_actions: jax.Array, extra_data: Any
) -> Tree:
    """Returns R trees of one node each, for a selection function.

    Actions that are proven losses have the lowest prior logits. `parents`,
    `children_index` and `embeddings`, which refer to other nodes, are None.

    Args:
        nodes: the trees.
        rows: R nodes; their edges may be newer than those in `nodes`.
        root_invalid_actions: `[R, A]`; of their games.
        extra_data: leaves `[R, ...]`; of their games.
    """
    _, statistics, evaluation = rows
    lowest = jnp.finfo(jnp.float32).min
    prior = jnp.where(losing_actions(nodes, rows), lowest, evaluation.prior)
    child = linked_entry(statistics.link)

    def of_children(numbers: jax.Array) -> jax.Array:
        return jnp.where(child >= 0, numbers[jnp.maximum(child, 0)], 0)

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
