"""Action selection: PUCT, and sequential halving at a Gumbel root.

The functions have the signatures of mctx's selection functions and depend on the node's
statistics only: ties go to the action with the lowest number.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from azjax.search.nodes import is_legal
from azjax.search.types import GumbelMuZeroExtraData, Tree


def exploration_rate(visits: jax.Array, c_init: float, c_base: float) -> jax.Array:
    """Returns C(s), Silver et al. 2018, methods, from the visits of s."""
    return c_init + jnp.log((visits + c_base + 1.0) / c_base)


def puct_scores(
    tree: Tree,
    node_index: jax.Array,
    *,
    c_init: float,
    c_base: float,
    first_play_reduction: float | None,
) -> tuple[jax.Array, jax.Array]:
    """Returns the two terms of PUCT, `[A]` values and `[A]` exploration terms.

    Values in [-1, 1] are mapped to [0, 1], as in AlphaZero's pseudocode; the value of
    an illegal action is -inf.

    Args:
        tree: unbatched.
        node_index: of the node.
        c_init: exploration at few visits.
        c_base: visits at which exploration has grown markedly.
        first_play_reduction: the value of an unvisited action is the node's value minus
            this times sqrt(prior of the visited actions) (Leela Zero); None: a
            loss (AlphaZero).
    """
    edge_visits = tree.children_visits[node_index]
    visits = tree.node_visits[node_index]
    prior = jax.nn.softmax(tree.children_prior_logits[node_index])
    is_visited = edge_visits > 0
    # The value of an unvisited action: a loss, or less than that of the node.
    if first_play_reduction is None:
        first_play = -1.0
    else:
        visited_prior = jnp.where(is_visited, prior, 0.0).sum()
        value = tree.node_values[node_index]
        first_play = value - first_play_reduction * jnp.sqrt(visited_prior)
    value = jnp.where(is_visited, tree.qvalues(node_index), first_play)
    value = jnp.where(is_legal(tree.children_prior_logits[node_index]), value, -jnp.inf)
    rate = exploration_rate(visits, c_init, c_base)
    return (value + 1) / 2, jnp.sqrt(visits) * rate * prior / (edge_visits + 1)


def puct_selection(
    rng_key: jax.Array,
    tree: Tree,
    node_index: jax.Array,
    depth: jax.Array,
    **settings: Any,
) -> jax.Array:
    """Returns the action with the highest PUCT score at a node below the root."""
    del rng_key, depth
    value, exploration = puct_scores(tree, node_index, **settings)
    return jnp.argmax(value + exploration).astype(jnp.int32)


def puct_root_selection(
    rng_key: jax.Array,
    tree: Tree,
    node_index: jax.Array,
    *,
    forced_playouts: float,
    **settings: Any,
) -> jax.Array:
    """Returns the action with the highest PUCT score at the root.

    With forced playouts, visited actions with fewer visits than `forced_visits` are
    selected first.
    """
    del rng_key
    value, exploration = puct_scores(tree, node_index, **settings)
    scores = value + exploration
    if forced_playouts:
        visits = tree.children_visits[node_index]
        prior = jax.nn.softmax(tree.children_prior_logits[node_index])
        is_due = (visits > 0) & (visits < forced_visits(visits, prior, forced_playouts))
        scores = jnp.where(is_due, jnp.inf, scores)
    illegal = tree.root_invalid_actions.astype(bool)
    return jnp.argmax(jnp.where(illegal, -jnp.inf, scores)).astype(jnp.int32)


def forced_visits(
    visits: jax.Array, prior: jax.Array, forced_playouts: float
) -> jax.Array:
    """Returns `[A]` float32; the minimum visits of the root's visited actions.

    Wu 2019, "Accelerating Self-Play Learning in Go", section 3.2; its k is
    `forced_playouts`.
    """
    return jnp.sqrt(forced_playouts * prior * visits.sum())


def pruned_visits(
    tree: Tree, node_index: jax.Array, *, forced_playouts: float, **settings: Any
) -> jax.Array:
    """Returns `[A]` float32; the root's visits without those that were only forced.

    Wu 2019, section 3.2: forced visits of each action but the most visited are removed
    as long as its score stays at or below that of the most visited one; a single
    remaining visit is removed too.
    """
    visits = tree.children_visits[node_index].astype(jnp.float32)
    prior = jax.nn.softmax(tree.children_prior_logits[node_index])
    value, exploration = puct_scores(tree, node_index, **settings)
    best = jnp.argmax(visits)
    lead = (value + exploration)[best] - value
    # The fewest visits with which the action's score stays at or below the best's.
    needed = exploration * (visits + 1) / jnp.maximum(lead, 1e-9) - 1
    forced = forced_visits(visits, prior, forced_playouts)
    pruned = jnp.maximum(visits - forced, jnp.ceil(needed))
    pruned = jnp.where(lead > 0, jnp.minimum(pruned, visits), visits)
    pruned = jnp.where(pruned <= 1, 0.0, pruned)
    return jnp.where(jnp.arange(visits.size) == best, visits, pruned)


@chex.dataclass(frozen=True)
class GumbelRoot(GumbelMuZeroExtraData):
    """Extra data of the selection at a Gumbel root, with the noise `root_gumbel`.

    kept_visits: `[B, A]` int32; visits of the starting tree, which sequential halving
        does not count.
    num_simulations: `[B]` int32; of the whole search.
    """

    kept_visits: jax.Array
    num_simulations: jax.Array


def sequential_halving_scores(
    considered_visit: jax.Array,
    gumbel: jax.Array,
    prior_logits: jax.Array,
    qvalues: jax.Array,
    visits: jax.Array,
) -> jax.Array:
    """Returns `[..., A]` scores: noise + prior logits + Q-values; -inf for actions with
    other visits than `considered_visit`. Danihelka et al. 2022, section 3."""
    logits = prior_logits - prior_logits.max(axis=-1, keepdims=True)
    scores = jnp.maximum(-1e9, gumbel + logits + qvalues)
    return jnp.where(visits == considered_visit, scores, -jnp.inf)


def gumbel_root_selection(
    rng_key: jax.Array,
    tree: Tree,
    node_index: jax.Array,
    *,
    max_num_considered_actions: int,
    qtransform: Any,
) -> jax.Array:
    """Returns the next action of sequential halving, as mctx does.

    The `max_num_considered_actions` actions with the highest sum of Gumbel noise and
    prior logits get equally many visits; then the worse half by that sum plus the
    Q-values is dropped, until two are left.

    Visits of the starting tree change an action's value, but are not counted by the
    halving. Actions with the lowest prior logits are excluded unless all have them.
    `tree.extra_data` is a `GumbelRoot`.
    """
    del rng_key
    visits = tree.children_visits[node_index] - tree.extra_data.kept_visits
    prior_logits = tree.children_prior_logits[node_index]
    legal = ~tree.root_invalid_actions.astype(bool)
    allowed = legal & is_legal(prior_logits)
    allowed = jnp.where(allowed.any(), allowed, legal)
    considered_visit = considered_visits(
        jnp.minimum(max_num_considered_actions, legal.sum(dtype=jnp.int32)),
        tree.extra_data.num_simulations,
        visits.sum(dtype=jnp.int32),
        max_num_considered_actions=max_num_considered_actions,
    )
    # Possibly no allowed action has exactly that many visits: take the nearest number.
    distance = jnp.where(allowed, jnp.abs(visits - considered_visit), 2**30)
    scores = sequential_halving_scores(
        visits[jnp.argmin(distance)],
        tree.extra_data.root_gumbel,
        prior_logits,
        qtransform(tree, node_index),
        visits,
    )
    return jnp.argmax(jnp.where(allowed, scores, -jnp.inf)).astype(jnp.int32)


def considered_visits(
    num_considered: jax.Array,
    num_simulations: jax.Array,
    simulation: jax.Array,
    *,
    max_num_considered_actions: int,
) -> jax.Array:
    """Returns the number of visits of the actions that sequential halving considers.

    Danihelka et al. 2022, algorithm 2 and figure 1. The arguments are int32 arrays of
    broadcastable shapes.

    Args:
        num_considered: root actions that enter the halving.
        num_simulations: of the whole search.
        simulation: number of simulations already made.
        max_num_considered_actions: upper bound of `num_considered`.
    """
    num_phases = jnp.maximum(1, 32 - jax.lax.clz(jnp.maximum(num_considered, 1) - 1))
    remaining = jnp.maximum(num_considered, 1)
    visits = jnp.zeros_like(remaining)
    for _ in range((max_num_considered_actions - 1).bit_length()):
        # A phase gives each remaining action `rounds` visits, then drops half of them.
        rounds = jnp.maximum(1, num_simulations // (num_phases * remaining))
        # The last two actions stay until the end.
        is_over = (simulation >= rounds * remaining) & (remaining > 2)
        simulation = jnp.where(is_over, simulation - rounds * remaining, simulation)
        visits = jnp.where(is_over, visits + rounds, visits)
        remaining = jnp.where(is_over, jnp.maximum(2, remaining // 2), remaining)
    return visits + simulation // remaining
