"""The solver: backs up proven wins, draws and losses.

With `use_solver` the trees carry `Bounds`, see `score_bounds`. Without it
`Nodes.bounds` is None, no node counts as proven, and functions that return `Nodes`
return them unchanged.
"""

import dataclasses

import jax
import jax.numpy as jnp

from azjax.search.nodes import (
    Nodes,
    Rows,
    encode_link,
    is_legal,
    linked_entry,
)
from azjax.search.paths import Paths
from azjax.search.score_bounds import (
    WIN,
    Bounds,
    is_proven,
    move_bounds,
    proven_value,
    score_of_reward,
    turned,
)
from azjax.search.types import RecurrentFnOutput


def is_proven_at(nodes: Nodes, entry: jax.Array) -> jax.Array:
    """Returns `[R]` bool, whether the results of some nodes are proven."""
    if nodes.bounds is None:
        return jnp.zeros(entry.shape, bool)
    return is_proven(jax.tree.map(lambda bound: bound[entry], nodes.bounds))


def is_expandable(nodes: Nodes, discount: jax.Array, entry: jax.Array) -> jax.Array:
    """Returns `[R]` bool, whether a simulation can continue below some nodes: not below
    a terminal node or a proven one."""
    return (discount != 0) & ~is_proven_at(nodes, entry)


def store_bounds(nodes: Nodes, entry: jax.Array, output: RecurrentFnOutput) -> Nodes:
    """Stores the bounds of newly evaluated nodes: exact where the game is over."""
    if nodes.bounds is None:
        return nodes
    ends = output.discount == 0
    score = score_of_reward(output.reward)
    new = Bounds(jnp.where(ends, score, -WIN), jnp.where(ends, score, WIN))
    return dataclasses.replace(
        nodes, bounds=jax.tree.map(_setter(entry), nodes.bounds, new)
    )


def losing_actions(nodes: Nodes, rows: Rows) -> jax.Array:
    """Returns `[R, A]` bool, the actions that are proven losses; none where all legal
    actions are."""
    legal = is_legal(rows.evaluation.prior)
    if nodes.bounds is None:
        return jnp.zeros(legal.shape, bool)
    child = linked_entry(rows.statistics.link)
    loses = move_bounds(nodes.bounds, child, legal).upper < 0
    return loses & (legal & ~loses).any(axis=-1, keepdims=True)


def back_up_bounds(nodes: Nodes, paths: Paths) -> Nodes:
    """Links new leaves to their parents, and propagates bounds from new terminal leaves
    towards the root until no bound changes. A node that becomes proven gets its exact
    value."""
    if nodes.bounds is None:
        return nodes
    # A parent's bounds are those of its children, so new leaves are linked to theirs
    # first.
    leaf = paths.leaf
    is_new = paths.is_valid & paths.is_new
    expands = is_expandable(nodes, nodes.evaluation[leaf].discount, leaf)
    links = nodes.statistics[paths.parent].link
    is_edge = jnp.arange(links.shape[-1])[None] == paths.action[:, None]
    linked = nodes.statistics.update(
        jnp.where(is_new, paths.parent, nodes.size),
        link=jnp.where(is_edge, encode_link(leaf, expands)[:, None], links),
    )

    def update_parent(state):
        entry, is_active, bounds, statistics = state
        evaluation = nodes.evaluation[entry]
        child = linked_entry(statistics[entry].link)
        moves = move_bounds(bounds, child, is_legal(evaluation.prior))
        best = Bounds(moves.lower.max(axis=-1), moves.upper.max(axis=-1))
        new = turned(best, evaluation.discount)
        # A path ends where a node's bounds stay, because those above it stay too.
        is_active &= (new.lower != bounds.lower[entry]) | (
            new.upper != bounds.upper[entry]
        )
        at = jnp.where(is_active, entry, nodes.size)
        proven_at = jnp.where(is_active & is_proven(new), entry, nodes.size)
        bounds = jax.tree.map(_setter(at), bounds, new)
        statistics = statistics.update(proven_at, value=proven_value(best))
        is_active &= evaluation.parent >= 0
        entry = jnp.where(is_active, evaluation.parent, entry)
        return entry, is_active, bounds, statistics

    # Only new ends of games start a path: nothing is known of other leaves.
    _, _, bounds, statistics = jax.lax.while_loop(
        lambda state: state[1].any(),
        update_parent,
        (paths.parent, is_new & ~expands, nodes.bounds, linked),
    )
    return dataclasses.replace(nodes, bounds=bounds, statistics=statistics)


def _setter(entry: jax.Array):
    """Returns a function that writes new numbers at some entries of an array."""
    return lambda array, new: array.at[entry].set(new.astype(array.dtype), mode="drop")
