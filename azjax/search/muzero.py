"""The policies of mctx, with its signatures and results."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import mctx

from azjax.search.gumbel import search_by_gumbel
from azjax.search.roots import (
    dirichlet_noise,
    in_float32,
    legal_actions,
    log_of,
    mask_invalid_actions,
    policy_output,
    sample_action,
)
from azjax.search.tree_search import search
from azjax.search.types import PolicyOutput, RootFnOutput


def gumbel_muzero_policy(  # noqa: PLR0917  # the order is mctx's
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    loop_fn: Callable[..., Any] = jax.lax.fori_loop,
    *,
    qtransform: Callable[..., Any] = mctx.qtransform_completed_by_mix_value,
    max_num_considered_actions: int = 16,
    gumbel_scale: float | jax.Array = 1.0,
) -> PolicyOutput:
    """Returns what `mctx.gumbel_muzero_policy` returns for the same arguments.

    The differences are those of `search`: no simulation continues below the end of a
    game, `qtransform` gets a tree of one node, and priors and values are converted to
    float32. `gumbel_policy` has more settings.

    Example:
        >>> import azjax.search as mctx  # in place of `import mctx`
        >>> output = mctx.gumbel_muzero_policy(
        ...     None, jax.random.key(0), root, recurrent_fn, 32, gumbel_scale=0.0
        ... )
        >>> output.action.tolist()
        [0]
    """
    return search_by_gumbel(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        invalid_actions=invalid_actions,
        qtransform=qtransform,
        max_num_considered_actions=max_num_considered_actions,
        gumbel_scale=gumbel_scale,
        max_depth=max_depth,
        loop_fn=loop_fn,
    )


def muzero_policy(  # noqa: PLR0917  # the order is mctx's
    params: Any,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    loop_fn: Callable[..., Any] = jax.lax.fori_loop,
    *,
    qtransform: Callable[..., Any] = mctx.qtransform_by_parent_and_siblings,
    dirichlet_fraction: float | jax.Array = 0.25,
    dirichlet_alpha: float | jax.Array = 0.3,
    pb_c_init: float = 1.25,
    pb_c_base: float = 19652,
    temperature: float | jax.Array = 1.0,
) -> PolicyOutput:
    """Returns what `mctx.muzero_policy` returns for the same arguments.

    As in mctx, the noise is drawn over all actions and masked afterwards, and ties are
    broken by the key. `alphazero_policy` draws the noise over the legal actions and
    breaks ties by number, which is faster, and has more settings. The differences from
    mctx are those of `gumbel_muzero_policy`.
    """
    action_key, dirichlet_key, search_key = jax.random.split(rng_key, 3)
    root = in_float32(root)
    prior = jax.nn.softmax(root.prior_logits)
    noise = dirichlet_noise(dirichlet_key, legal_actions(root, None), dirichlet_alpha)
    noisy = (1 - dirichlet_fraction) * prior + dirichlet_fraction * noise
    select = functools.partial(
        mctx.muzero_action_selection,
        qtransform=qtransform,
        pb_c_init=pb_c_init,
        pb_c_base=pb_c_base,
    )
    tree = search(
        params,
        search_key,
        root=root.replace(
            prior_logits=mask_invalid_actions(log_of(noisy), invalid_actions)
        ),
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(select, depth=0),
        interior_action_selection_fn=select,
        num_simulations=num_simulations,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        loop_fn=loop_fn,
    )
    weights = tree.summary().visit_probs
    action = sample_action(action_key, weights, temperature)
    return policy_output(action, weights, tree)
