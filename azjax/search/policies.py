"""Searches with the settings of a `SearchConfig`, for training and players."""

from typing import Any

import jax
import jax.numpy as jnp
import mctx

from azjax.search.config import SearchConfig
from azjax.search.slices import SearchSlice
from azjax.search.subtree import empty_tree
from azjax.search.types import PolicyOutput, RootFnOutput, Tree


def run_search(  # noqa: PLR0917  # the order is mctx's
    config: SearchConfig,
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array,
    explores: bool,
    max_depth: int | None = None,
    tree: Tree | None = None,
    search_slice: SearchSlice | None = None,
) -> PolicyOutput:
    """Searches with the settings of `config`.

    Args:
        config: the search's settings.
        params: passed on to `recurrent_fn`.
        rng_key: consumed; one key, or `[P]` for P equal parts of the batch.
        root: prior logits `[B, A]` and values `[B]`, converted to float32; states
            `[B, ...]`.
        recurrent_fn: the model.
        num_simulations: at least 1.
        invalid_actions: `[B, A]` bool, True where illegal at the root.
        explores: whether to explore at the root as in self-play (noise, forced
            playouts). The action is the best one in both cases.
        max_depth: longest path from the root (moves); the game's `max_moves` does not
            change the result and saves memory.
        tree: trees to start from; default: empty trees.
        search_slice: the part of a longer search that this call makes; default: all.
    """
    return config.policy(explores)(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
        max_depth=max_depth,
        tree=tree,
        search_slice=search_slice,
        use_solver=config.use_solver,
    )


def init_trees(
    config: SearchConfig, embedding: Any, num_actions: int, num_simulations: int
) -> Tree | None:
    """Returns empty trees that are kept from move to move; None without tree reuse.

    They have room for the kept nodes and those of one search. After each search,
    `subtree(tree, node_index, max_nodes=config.tree_reuse_nodes)` makes the next tree.

    Args:
        config: the search's settings.
        embedding: the states, leaves `[B, ...]`; only their shapes are used.
        num_actions: A.
        num_simulations: of each search.
    """
    if not config.tree_reuse_nodes:
        return None
    return empty_tree(
        embedding,
        num_actions,
        config.num_nodes(num_simulations),
        use_solver=config.use_solver,
    )


def improved_value(output: PolicyOutput) -> jax.Array:
    """Returns `[B]`, the value of the root under the search's policy.

    The mean of the visited actions' Q-values, weighted by the action weights. The
    root's running mean also counts visits that exploration spent on bad actions.
    """
    summary = output.search_tree.summary()
    weights = jnp.where(summary.visit_counts > 0, output.action_weights, 0.0)
    total = weights.sum(axis=-1)
    value = (weights * summary.qvalues).sum(axis=-1) / jnp.maximum(total, 1e-6)
    return jnp.where(total > 1e-6, value, summary.value)
