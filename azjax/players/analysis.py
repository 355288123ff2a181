"""What a search saw in a position, for people to look at."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.search import Tree

MAX_LINE = 16  # moves


class Analysis(NamedTuple):
    """What a search saw in each of B positions; A actions, L moves.

    prior: `[B, A]` float32; the probabilities of the moves before the search.
    visits: `[B, A]` int32; how often the search tried each move.
    action_values: `[B, A]` float32; the expected result of each move for the player
        who makes it, in [-1, 1]; 0 where it was never tried.
    line: `[B, L]` int32; the chosen move and what it expects to follow, the principal
        variation; -1 after its end.
    """

    prior: jax.Array
    visits: jax.Array
    action_values: jax.Array
    line: jax.Array


def analysis_of(tree: Tree, action: jax.Array, prior_logits: jax.Array) -> Analysis:
    """Reads from the roots of searched trees what a person wants to know.

    Args:
        tree: B trees.
        action: `[B]` int32; the moves that were chosen.
        prior_logits: `[B, A]` of the moves at the roots, the lowest number where
            illegal.
    """
    summary = tree.summary()
    return Analysis(
        prior=jax.nn.softmax(prior_logits),
        visits=summary.visit_counts.astype(jnp.int32),
        action_values=jnp.where(summary.visit_counts > 0, summary.qvalues, 0.0),
        line=_line(tree, action),
    )


def _line(tree: Tree, action: jax.Array) -> jax.Array:
    """Returns `[B, L]`: the chosen move, then always the most visited one."""
    game = jnp.arange(action.shape[0])

    def go_on(carry, _):
        node, action = carry
        is_node = node >= 0
        shown = jnp.where(is_node, action, -1)
        child = jnp.where(is_node, tree.children_index[game, node, action], -1)
        visits = tree.children_visits[game, child]
        is_searched = (child >= 0) & (visits.max(axis=-1) > 0)
        next_action = visits.argmax(axis=-1).astype(jnp.int32)
        return (jnp.where(is_searched, child, -1), next_action), shown

    start = (jnp.zeros_like(action), action)
    return jax.lax.scan(go_on, start, length=MAX_LINE)[1].T
