"""The search policies of AlphaZero: Gumbel, and PUCT with Dirichlet noise."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from azjax.search.config import SearchConfig
from azjax.search.conversion import ProvenTree, root_bounds
from azjax.search.keys import draw, split_keys
from azjax.search.roots import (
    dirichlet_noise,
    in_float32,
    legal_actions,
    log_of,
    mask_invalid_actions,
    policy_output,
    sample_action,
)
from azjax.search.score_bounds import best_moves
from azjax.search.selection import (
    GumbelRoot,
    gumbel_root_selection,
    pruned_visits,
    puct_root_selection,
    puct_selection,
    sequential_halving_scores,
)
from azjax.search.slices import SearchSlice
from azjax.search.subtree import empty_tree
from azjax.search.tree_search import search
from azjax.search.types import PolicyOutput, RootFnOutput, Tree


def gumbel_policy(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None = None,
    max_num_considered_actions: int = 16,
    gumbel_scale: float | jax.Array = 1.0,
    value_scale: float = 0.1,
    rescale_values: bool = True,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches with Gumbel sequential halving at the root.

    Danihelka et al. 2022, "Policy improvement by planning with Gumbel", sections 3 to
    5. The root actions with the highest prior logits plus Gumbel noise get equally many
    visits, the worse half is dropped, and so on. The improved policy (equation 11) is
    softmax(prior logits + scaled completed Q-values); the scale grows with the visits.
    The Q-value of an unvisited action is completed by the node's network value averaged
    with the Q-values of the visited actions (appendix D). Below the root, the selected
    action is the one whose visits are furthest behind this policy. The result is that
    of `mctx.gumbel_muzero_policy`.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed.
        root: prior logits `[B, A]` and values `[B]`, converted to float32; states
            `[B, ...]`.
        recurrent_fn: the model; illegal actions have the lowest prior logits.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        max_num_considered_actions: root actions that enter sequential halving.
        gumbel_scale: scale of the root's Gumbel noise; 0 for evaluation.
        value_scale: weight of the values against the prior logits.
        rescale_values: whether to rescale the values of each node to [0, 1] first.
        **search_settings: `max_depth`, `tree`, `use_solver` and `search_slice` of
            `search`. Trees that are kept from move to move start from `init_trees` or
            `empty_tree`.

    Returns:
        The action, the improved policy (`action_weights`), and the tree.
    """
    SearchConfig(
        max_num_considered_actions=max_num_considered_actions,
        value_scale=value_scale,
        rescale_values=rescale_values,
    )  # checks them
    return search_by_gumbel(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
        qtransform=functools.partial(
            mctx.qtransform_completed_by_mix_value,
            value_scale=value_scale,
            rescale_values=rescale_values,
        ),
        max_num_considered_actions=max_num_considered_actions,
        gumbel_scale=gumbel_scale,
        **search_settings,
    )


def search_by_gumbel(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None,
    qtransform: Callable[..., Any],
    max_num_considered_actions: int,
    gumbel_scale: float | jax.Array,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches like `gumbel_policy`, with any transformation of the Q-values.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed.
        root: as in `gumbel_policy`.
        recurrent_fn: the model.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        qtransform: `(tree, node_index)` to the `[A]` completed Q-values of a node; it
            reads the statistics of that node only.
        max_num_considered_actions: as in `gumbel_policy`.
        gumbel_scale: as in `gumbel_policy`.
        **search_settings: of `search`.
    """
    root = in_float32(root)
    root = root.replace(
        prior_logits=mask_invalid_actions(root.prior_logits, invalid_actions)
    )
    rng_key, gumbel_key = split_keys(rng_key, 2)
    gumbel = gumbel_scale * draw(_gumbel_like, gumbel_key, root.prior_logits)
    start = search_settings.get("tree")
    search_slice = search_settings.get("search_slice")
    total = jnp.full(root.value.shape, num_simulations, jnp.int32)
    kept_visits = jnp.zeros(gumbel.shape, jnp.int32)
    if start is not None:
        kept_visits = start.children_visits[:, start.ROOT_INDEX]
    if search_slice is not None:
        total = search_slice.total
        is_first = (search_slice.made == 0)[:, None]
        kept_visits = jnp.where(is_first, kept_visits, 0)
    tree = search(
        params,
        rng_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(
            gumbel_root_selection,
            max_num_considered_actions=max_num_considered_actions,
            qtransform=qtransform,
        ),
        interior_action_selection_fn=functools.partial(
            mctx.gumbel_muzero_interior_action_selection, qtransform=qtransform
        ),
        num_simulations=num_simulations,
        invalid_actions=invalid_actions,
        extra_data=GumbelRoot(
            root_gumbel=gumbel, kept_visits=kept_visits, num_simulations=total
        ),
        selects_on_update=True,
        **search_settings,
    )
    visits = tree.children_visits[:, tree.ROOT_INDEX] - kept_visits
    qvalues = jnp.asarray(
        jax.vmap(qtransform, in_axes=(0, None))(tree, tree.ROOT_INDEX)
    )
    allowed = _allowed_actions(tree)
    most_visits = jnp.where(allowed, visits, 0).max(axis=-1, keepdims=True)
    scores = sequential_halving_scores(
        most_visits, gumbel, root.prior_logits, qvalues, visits
    )
    scores = jnp.where(allowed, scores, -jnp.inf)
    logits = mask_invalid_actions(root.prior_logits + qvalues, ~allowed)
    action = jnp.argmax(scores, axis=-1).astype(jnp.int32)
    return policy_output(action, jax.nn.softmax(logits), tree)


def alphazero_policy(
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    *,
    invalid_actions: jax.Array | None = None,
    c_init: float = 1.25,
    c_base: float = 19652.0,
    first_play_reduction: float | None = None,
    forced_playouts: float = 0.0,
    dirichlet_alpha: float | None = None,
    dirichlet_fraction: float | jax.Array = 0.25,
    temperature: float | jax.Array = 1.0,
    **search_settings: Any,
) -> PolicyOutput:
    """Searches by PUCT with Dirichlet noise at the root.

    Silver et al. 2018, "A general reinforcement learning algorithm that masters chess,
    shogi, and Go through self-play", and its pseudocode: values in [-1, 1] are mapped
    to [0, 1]. The action weights are the normalised visit counts. Ties go to the action
    with the lowest number.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed.
        root: prior logits `[B, A]` and values `[B]`, converted to float32; states
            `[B, ...]`.
        recurrent_fn: the model; illegal actions have the lowest prior logits.
        num_simulations: at least 1.
        invalid_actions: `[B, A]`, nonzero where illegal at the root. Required where any
            action is illegal: the noise is drawn over the legal actions.
        c_init: exploration at few visits.
        c_base: visits at which exploration has grown markedly.
        first_play_reduction: the Q-value of an unvisited action is the node's value
            minus this times sqrt(prior of the visited actions) (KataGo: 0.2); None: a
            loss (AlphaZero).
        forced_playouts: k of Wu 2019, "Accelerating Self-Play Learning in Go", section
            3.2 (there 2): visited root actions get at least sqrt(k * prior * visits)
            visits, and visits that were only forced are removed from the action
            weights. 0: none.
        dirichlet_alpha: concentration of the root noise; None: 10 / the number of
            legal actions of each root.
        dirichlet_fraction: weight of the noise in the prior of the legal root actions;
            0 for evaluation.
        temperature: of sampling from the visit counts; 0 takes the most visited.
        **search_settings: `max_depth`, `tree`, `use_solver` and `search_slice` of
            `search`. Trees that are kept from move to move start from `init_trees` or
            `empty_tree`.

    Returns:
        The action, the policy (`action_weights`), and the tree.
    """
    settings: dict[str, Any] = {
        "c_init": c_init,
        "c_base": c_base,
        "first_play_reduction": first_play_reduction,
    }
    SearchConfig(
        algorithm="alphazero",
        forced_playouts=forced_playouts,
        dirichlet_alpha=dirichlet_alpha,
        **settings,
    )  # checks them
    action_key, dirichlet_key, search_key = split_keys(rng_key, 3)
    root = _with_noise(
        in_float32(root),
        dirichlet_key,
        invalid_actions,
        alpha=dirichlet_alpha,
        fraction=dirichlet_fraction,
    )
    tree = search(
        params,
        search_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(
            puct_root_selection, forced_playouts=forced_playouts, **settings
        ),
        interior_action_selection_fn=functools.partial(puct_selection, **settings),
        num_simulations=num_simulations,
        invalid_actions=invalid_actions,
        selects_on_update=True,
        **search_settings,
    )
    weights = _visit_weights(tree, forced_playouts, settings)
    action = draw(
        functools.partial(sample_action, temperature=temperature), action_key, weights
    )
    return policy_output(action, weights, tree)


def _with_noise(
    root: RootFnOutput,
    rng_key: jax.Array,
    invalid_actions: jax.Array | None,
    *,
    alpha: float | None,
    fraction: float | jax.Array,
) -> RootFnOutput:
    """Mixes Dirichlet noise into the priors of the legal root actions."""
    prior = jax.nn.softmax(mask_invalid_actions(root.prior_logits, invalid_actions))
    noise = draw(
        functools.partial(dirichlet_noise, alpha=alpha),
        rng_key,
        legal_actions(root, invalid_actions),
    )
    noisy = (1 - fraction) * prior + fraction * noise
    return root.replace(
        prior_logits=mask_invalid_actions(log_of(noisy), invalid_actions)
    )


def _visit_weights(
    tree: Tree, forced_playouts: float, settings: dict[str, Any]
) -> jax.Array:
    """Returns `[B, A]` float32, the normalised visits of the roots' allowed actions."""
    visits = tree.children_visits[:, tree.ROOT_INDEX].astype(jnp.float32)
    if forced_playouts:
        prune = functools.partial(
            pruned_visits, forced_playouts=forced_playouts, **settings
        )
        visits = jax.vmap(prune, in_axes=(0, None))(tree, tree.ROOT_INDEX)
    allowed = _allowed_actions(tree)
    visits = jnp.where(allowed, visits, 0.0)
    # If no allowed action was visited, all of them get the same weight.
    visits = jnp.where(visits.sum(axis=-1, keepdims=True) > 0, visits, allowed)
    return visits / jnp.maximum(visits.sum(axis=-1, keepdims=True), 1.0)


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
        explores: whether to add noise at the root, as in self-play. The action is the
            best one in both cases.
        max_depth: longest path from the root (moves); the game's `max_moves` does not
            change the result and saves memory.
        tree: trees to start from; default: empty trees.
        search_slice: the part of a longer search that this call makes; default: all.
    """
    return _POLICIES[config.algorithm](config, explores)(
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


def _configured_gumbel(
    config: SearchConfig, explores: bool
) -> Callable[..., PolicyOutput]:
    return functools.partial(
        gumbel_policy,
        max_num_considered_actions=config.max_num_considered_actions,
        gumbel_scale=1.0 if explores else 0.0,
        value_scale=config.value_scale,
        rescale_values=config.rescale_values,
    )


def _configured_alphazero(
    config: SearchConfig, explores: bool
) -> Callable[..., PolicyOutput]:
    return functools.partial(
        alphazero_policy,
        c_init=config.c_init,
        c_base=config.c_base,
        first_play_reduction=config.first_play_reduction,
        forced_playouts=config.forced_playouts if explores else 0.0,
        dirichlet_alpha=config.dirichlet_alpha,
        dirichlet_fraction=config.dirichlet_fraction if explores else 0.0,
        temperature=0.0,
    )


_POLICIES = {"gumbel": _configured_gumbel, "alphazero": _configured_alphazero}


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


def _gumbel_like(rng_key: jax.Array, logits: jax.Array) -> jax.Array:
    return jax.random.gumbel(rng_key, logits.shape, logits.dtype)


def _allowed_actions(tree: Tree) -> jax.Array:
    """Returns `[B, A]` bool; the legal root actions, restricted to the best ones where
    results are proven."""
    if isinstance(tree, ProvenTree):
        return best_moves(root_bounds(tree))
    return ~tree.root_invalid_actions.astype(bool)
