"""Random draws for a batch of searches, with one key or one key for each lane of it.

With `[L]` keys the batch consists of L equal lanes, and the draws of a lane depend on
its own key only.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def typed_key(rng_key: jax.Array) -> jax.Array:
    """Returns a key, or `[L]`, of `jax.random.PRNGKey` as one of `jax.random.key`."""
    if jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key):
        return rng_key
    return jax.random.wrap_key_data(rng_key)


def split_keys(rng_key: jax.Array, count: int) -> jax.Array:
    """Returns `count` keys, or `[count, L]` of `[L]` keys, which are consumed."""
    rng_key = typed_key(rng_key)
    if rng_key.ndim == 0:
        return jax.random.split(rng_key, count)
    keys = jax.vmap(lambda key: jax.random.split(key, count))(rng_key)
    # JAX's key checker takes keys of a transposed array for reused ones.
    data = jax.random.key_data(keys).swapaxes(0, 1)
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(keys))


def keys_of_games(rng_key: jax.Array, batch_size: int) -> jax.Array:
    """Returns `[B]` keys, one for each search, from one key or `[L]`, consumed."""
    if rng_key.ndim == 0:
        return jax.random.split(rng_key, batch_size)
    size = batch_size // rng_key.size
    return jax.vmap(lambda key: jax.random.split(key, size))(rng_key).ravel()


def fold_in(rng_key: jax.Array, number: jax.Array | int) -> jax.Array:
    """Returns `jax.random.fold_in(rng_key, number)`, of one key or of each of `[L]`."""
    if rng_key.ndim == 0:
        return jax.random.fold_in(rng_key, number)
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(rng_key)


def draw(
    sampler: Callable[..., jax.Array], rng_key: jax.Array, *arrays: Any
) -> jax.Array:
    """Returns `sampler(rng_key, *arrays)` of a batch, or of each lane for `[L]` keys.

    Args:
        sampler: draws for arrays `[B, ...]`, and returns one array `[B, ...]`.
        rng_key: one key, or one for each of L lanes; consumed.
        *arrays: `[B, ...]`; B is a multiple of L.
    """
    if rng_key.ndim == 0:
        return sampler(rng_key, *arrays)
    lanes = [split_batch(array, rng_key.size) for array in arrays]
    return merge_batch(jax.vmap(sampler)(rng_key, *lanes))


def draw_uniform(rng_key: jax.Array, array: jax.Array) -> jax.Array:
    """Returns random float32 numbers in [0, 1), of the shape of `array`; see `draw`."""
    return draw(
        lambda key, lane: jax.random.uniform(key, lane.shape, jnp.float32),
        rng_key,
        array,
    )


def split_batch(tree: Any, num_lanes: int) -> Any:
    """Returns arrays `[B, ...]` as `[L, B / L, ...]`."""
    return jax.tree.map(lambda leaf: leaf.reshape(num_lanes, -1, *leaf.shape[1:]), tree)


def merge_batch(tree: Any) -> Any:
    """Returns arrays `[L, N, ...]` as `[L * N, ...]`."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree)
