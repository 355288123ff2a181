"""The root's prior before a search, and its action and value after it."""

import jax
import jax.numpy as jnp
import mctx

from azjax.search.conversion import ProvenTree, root_bounds
from azjax.search.score_bounds import best_moves
from azjax.search.types import PolicyOutput, RootFnOutput, Tree


def in_float32(root: RootFnOutput) -> RootFnOutput:
    """Returns a root with prior logits and values in float32."""
    return root.replace(
        prior_logits=jnp.asarray(root.prior_logits, jnp.float32),
        value=jnp.asarray(root.value, jnp.float32),
    )


def legal_actions(root: RootFnOutput, invalid_actions: jax.Array | None) -> jax.Array:
    """Returns `[B, A]` bool; without `invalid_actions` all actions are legal."""
    if invalid_actions is None:
        return jnp.ones(root.prior_logits.shape, bool)
    return ~jnp.asarray(invalid_actions).astype(bool)


def mask_invalid_actions(
    logits: jax.Array, invalid_actions: jax.Array | None
) -> jax.Array:
    """Sets the logits of invalid actions to the lowest number."""
    if invalid_actions is None:
        return logits
    logits = logits - logits.max(axis=-1, keepdims=True)
    return jnp.where(invalid_actions, jnp.finfo(logits.dtype).min, logits)


def dirichlet_noise(
    rng_key: jax.Array, legal: jax.Array, alpha: float | jax.Array | None
) -> jax.Array:
    """Draws Dirichlet noise over the legal actions of each root.

    Args:
        rng_key: consumed.
        legal: `[B, A]` bool.
        alpha: concentration; None: 10 / the number of legal actions.

    Returns:
        `[B, A]` float32 probabilities, 0 where illegal; the same as
        `jax.random.dirichlet` where all actions are legal.
    """
    if alpha is None:
        alpha = 10 / jnp.maximum(legal.sum(axis=-1, keepdims=True), 1)
    concentration = jnp.broadcast_to(jnp.asarray(alpha, jnp.float32), legal.shape)
    log_gamma = jax.random.loggamma(rng_key, concentration, dtype=jnp.float32)
    lowest = jnp.finfo(jnp.float32).min
    return jax.nn.softmax(jnp.where(legal, log_gamma, lowest), axis=-1)


def sample_action(
    rng_key: jax.Array, weights: jax.Array, temperature: float | jax.Array
) -> jax.Array:
    """Samples `[B]` int32 actions from weights ** (1 / temperature); temperature 0
    takes one of the highest weights. The key is consumed.

    Args:
        rng_key: one key.
        weights: `[B, A]` probabilities.
        temperature: at least 0.
    """
    logits = log_of(weights)
    logits -= logits.max(axis=-1, keepdims=True)
    logits /= jnp.maximum(jnp.finfo(logits.dtype).tiny, temperature)
    return jax.random.categorical(rng_key, logits).astype(jnp.int32)


def policy_output(action: jax.Array, weights: jax.Array, tree: Tree) -> PolicyOutput:
    """Returns the `mctx.PolicyOutput` of a search."""
    fields = {"action": action, "action_weights": weights, "search_tree": tree}
    return mctx.PolicyOutput(**fields)


def log_of(probabilities: jax.Array) -> jax.Array:
    """Returns finite logarithms of probabilities, which may be 0."""
    return jnp.log(jnp.maximum(probabilities, jnp.finfo(probabilities.dtype).tiny))


def allowed_actions(tree: Tree) -> jax.Array:
    """Returns `[B, A]` bool; the legal root actions, restricted to the best ones where
    results are proven."""
    if isinstance(tree, ProvenTree):
        return best_moves(root_bounds(tree))
    return ~tree.root_invalid_actions.astype(bool)


def improved_value(output: PolicyOutput) -> jax.Array:
    """Returns `[B]`, the value of the root under the search's policy.

    The mean of the visited actions' Q-values, weighted by the action weights. The
    root's running mean also counts visits that exploration spent on bad actions.

    Example:
        >>> bool(search.improved_value(output) > 0)
        True
    """
    summary = output.search_tree.summary()
    weights = jnp.where(summary.visit_counts > 0, output.action_weights, 0.0)
    total = weights.sum(axis=-1)
    value = (weights * summary.qvalues).sum(axis=-1) / jnp.maximum(total, 1e-6)
    return jnp.where(total > 1e-6, value, summary.value)
