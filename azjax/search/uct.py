"""UCT: tree search by UCB1, without a network."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from azjax.search.keys import draw, split_keys
from azjax.search.nodes import is_legal
from azjax.search.roots import policy_output
from azjax.search.tree_search import search
from azjax.search.types import Model, PolicyOutput, RootFnOutput, Tree


def uct_policy(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: Model,
    num_simulations: int,
    *,
    invalid_actions: jax.Array,
    exploration: float = 2**0.5,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches by UCT and selects the most visited action.

    Kocsis and Szepesvari 2006, "Bandit based Monte-Carlo planning"; algorithm 2 of
    Browne et al. 2012, "A survey of Monte Carlo tree search methods". Ties between
    visit counts are broken by Q-value, then at random. The action weights are the
    normalized visit counts.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed; one key, or `[L]` for L lanes of the batch.
        root: prior logits `[B, A]` and values `[B]` in float32, states `[B, ...]`.
        recurrent_fn: the model; its values are, for example, results of random
            playouts. Actions of a node are first tried in the order of its prior
            logits, highest first; illegal ones have the lowest.
        num_simulations: at least 1.
        invalid_actions: `[B, A]` bool, True where illegal at the root.
        exploration: c of `ucb1_scores`.
        **search_settings: `max_depth`, `tree` and `search_slice` of `search`.

    Example:
        >>> none = jnp.zeros((1, 3), bool)
        >>> output = search.uct_policy(
        ...     None, jax.random.key(0), root, recurrent_fn, 32, invalid_actions=none
        ... )
        >>> output.action.tolist()
        [0]
    """
    search_key, action_key = split_keys(rng_key, 2)
    select = functools.partial(ucb1_selection, exploration=exploration)
    tree = search(
        params,
        search_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=select,
        interior_action_selection_fn=lambda rng_key, tree, node_index, depth: select(
            rng_key, tree, node_index
        ),
        num_simulations=num_simulations,
        invalid_actions=invalid_actions,
        caches_selection=True,
        **search_settings,
    )
    summary = tree.summary()
    visits = jnp.where(invalid_actions, 0, summary.visit_counts)
    # Of the most visited actions those with the highest Q-value, and of these a random
    # one.
    best = visits == visits.max(axis=-1, keepdims=True)
    value = jnp.where(best, summary.qvalues, -jnp.inf)
    best &= value == value.max(axis=-1, keepdims=True)
    logits = jnp.where(best, 0.0, -jnp.inf)
    action = draw(jax.random.categorical, action_key, logits)
    weights = visits / visits.sum(axis=-1, keepdims=True)
    return policy_output(action.astype(jnp.int32), weights, tree)


def ucb1_selection(
    rng_key: jax.Array, tree: Tree, node_index: jax.Array, *, exploration: float
) -> jax.Array:
    """Returns the next untried action, then the one with the highest UCB1 score; ties
    go to the action with the lowest number."""
    del rng_key
    prior_logits = tree.children_prior_logits[node_index]
    legal = is_legal(prior_logits)
    is_new = legal & (tree.children_visits[node_index] == 0)
    scores = jnp.where(legal, ucb1_scores(tree, node_index, exploration), -jnp.inf)
    order = jnp.where(is_new, prior_logits, -jnp.inf)
    return jnp.argmax(jnp.where(is_new.any(), order, scores)).astype(jnp.int32)


def ucb1_scores(tree: Tree, node_index: jax.Array, exploration: float) -> jax.Array:
    """Returns `[A]`, the mean value of each visited action, mapped from [-1, 1] to
    [0, 1], plus c * sqrt(ln(visits of the node) / visits of the action).

    Auer et al. 2002, "Finite-time analysis of the multiarmed bandit problem", figure 1,
    where c is sqrt(2). A node's own evaluation is the first of its visits.
    """
    visits = tree.children_visits[node_index]
    total = jnp.log(tree.node_visits[node_index].astype(jnp.float32))
    value = (tree.qvalues(node_index) + 1) / 2
    return value + exploration * jnp.sqrt(total / jnp.maximum(visits, 1))
