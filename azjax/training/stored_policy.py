"""Stored policies and values of actions: float16, sparse where that is smaller."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class StoredPolicy(NamedTuple):
    """Policies over A actions, as the replay stores them.

    probability: `[..., A]` float16, or `[..., K]` if sparse; all 0 without a policy
        target.
    action: `[..., K]` unsigned integers, the actions of the K entries; None if dense.
    """

    probability: jax.Array
    action: jax.Array | None


def action_dtype(num_actions: int) -> np.dtype:
    """Returns the smallest unsigned integer type that holds every action."""
    return np.min_scalar_type(num_actions - 1)


def is_sparse(num_actions: int, entries: int) -> bool:
    """Returns whether K = `entries` probabilities with their actions take less memory
    than all `num_actions` probabilities."""
    entry_bytes = action_dtype(num_actions).itemsize + 2
    return entries * entry_bytes < 2 * num_actions


def store_policy(policy: jax.Array, entries: int) -> tuple[StoredPolicy, jax.Array]:
    """Compresses policies; sparse ones keep their largest entries, renormalized.

    Args:
        policy: `[..., A]` float32; each sums to 1, or is all 0.
        entries: K; all entries are stored unless K of them take less memory.

    Returns:
        The stored policies, and `[...]` float32, the probability that was dropped.
    """
    num_actions = policy.shape[-1]
    if not is_sparse(num_actions, entries):
        stored = StoredPolicy(policy.astype(jnp.float16), None)
        return stored, jnp.zeros_like(policy[..., 0])
    largest, action = jax.lax.top_k(policy, entries)
    kept = largest.sum(axis=-1, keepdims=True)
    probability = largest / jnp.where(kept > 0, kept, 1.0)
    stored = StoredPolicy(
        probability.astype(jnp.float16), action.astype(action_dtype(num_actions))
    )
    return stored, jnp.maximum(policy.sum(axis=-1) - kept[..., 0], 0.0)


def store_values(
    policy: StoredPolicy, qvalues: jax.Array, is_visited: jax.Array
) -> jax.Array:
    """Returns the values of the actions that stored policies list.

    Args:
        policy: leaves `[..., A]` if dense, `[..., K]` if sparse.
        qvalues: `[..., A]` float32; the search's values, in [-1, 1].
        is_visited: `[..., A]` bool; whether the search visited the action.

    Returns:
        Float16 values in the shape of `policy.probability`, rounded to multiples of
        1/1024, which take a third less in compressed files; -inf for actions without
        visits.
    """
    rounded = jnp.round(qvalues * 1024) / 1024
    # Not NaN, which would end a run with `jax_debug_nans`.
    values = jnp.where(is_visited, rounded, -jnp.inf).astype(jnp.float16)
    if policy.action is None:
        return values
    return jnp.take_along_axis(values, policy.action.astype(jnp.int32), axis=-1)


class Entries(NamedTuple):
    """The M entries of N policies, as NumPy arrays, policy by policy.

    counts: `[N]` number of entries of each policy.
    actions: `[M]` their actions.
    probabilities: `[M]` float16.
    values: `[M]` float16; the search's values, NaN for actions without visits.
    """

    counts: np.ndarray
    actions: np.ndarray
    probabilities: np.ndarray
    values: np.ndarray


def listed_entries(policy: StoredPolicy, values: np.ndarray) -> Entries:
    """Lists the entries of N stored policies that are above 0.

    Args:
        policy: NumPy leaves `[N, ...]`.
        values: those of `store_values`, in the shape of `policy.probability`.
    """
    probability = np.asarray(policy.probability)
    is_entry = probability > 0
    actions = np.nonzero(is_entry)[1]
    if policy.action is not None:
        actions = np.asarray(policy.action)[is_entry]
    values = values[is_entry] + np.float16(0)  # no -0.0
    return Entries(
        counts=is_entry.sum(axis=1),
        actions=actions,
        probabilities=probability[is_entry],
        values=np.where(np.isneginf(values), np.float16(np.nan), values),
    )


def expand_policy(stored: StoredPolicy, num_actions: int) -> jax.Array:
    """Returns `[N, A]` float32 policies from N stored ones."""
    probability = stored.probability.astype(jnp.float32)
    if stored.action is None:
        return probability
    rows = jnp.arange(probability.shape[0])[:, None]
    policy = jnp.zeros((probability.shape[0], num_actions), jnp.float32)
    return policy.at[rows, stored.action].set(probability, unique_indices=True)
