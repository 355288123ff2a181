"""Forecast of the device memory of a search."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from azjax.search.config import MAX_NODES, SearchConfig
from azjax.search.nodes import empty_nodes, num_new_nodes
from azjax.search.packing import WORD
from azjax.search.paths import empty_paths
from azjax.search.subtree import empty_tree
from azjax.settings import check_int


def search_bytes(
    config: SearchConfig,
    embedding: Any,
    num_actions: int,
    num_simulations: int,
    *,
    max_depth: int | None = None,
    has_chance: bool = False,
) -> int:
    """Returns the bytes of a search's arrays, without the network's.

    Nothing is computed or allocated. The compiler's figure is larger, mostly by less
    than a quarter and in the tests by less than two fifths.

    Args:
        config: the search's settings.
        embedding: the states of B games, leaves `[B, ...]`, arrays or their shapes.
        num_actions: A.
        num_simulations: of each search.
        max_depth: longest path from the root (moves), as given to the search.
        has_chance: whether the model is a `ChanceModel`.

    Example:
        >>> states = jax.ShapeDtypeStruct((4096,), jnp.int32)
        >>> search.search_bytes(search.GumbelConfig(), states, 3, 64) < 2**26
        True
    """
    check_int("num_simulations", num_simulations, 1, MAX_NODES)
    # For one game: the entries of all games may be too many for an array of JAX.
    states = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape[1:]), leaf.dtype), embedding
    )
    num_nodes = config.num_nodes(num_simulations, has_chance)
    num_new = num_new_nodes(num_simulations, has_chance)
    batch_size = jax.tree.leaves(embedding)[0].shape[0]
    # Kept trees can be deeper than one search.
    depth = num_nodes if config.tree_reuse_nodes else num_new
    if max_depth:
        depth = min(num_new_nodes(max_depth, has_chance), depth)
    kinds = {"use_solver": config.use_solver, "has_chance": has_chance}
    nodes = jax.eval_shape(
        lambda state: empty_nodes(state, num_actions, num_nodes, **kinds), states
    )
    packing = nodes.statistics.packing
    depth += has_chance
    paths = jax.eval_shape(lambda: empty_paths(jnp.zeros(1, int), depth, packing))
    total = tree_bytes(paths)
    if packing is not None:
        total += paths.levels * packing.num_words * WORD.itemsize  # the updated rows
    for allocate in (empty_nodes, empty_tree)[: 2 if config.tree_reuse_nodes else 1]:
        # With tree reuse the previous trees stay until the next ones are made.
        make = functools.partial(allocate, states, num_actions, num_nodes, **kinds)
        total += tree_bytes(jax.eval_shape(make))
    return batch_size * total


def tree_bytes(arrays: Any) -> int:
    """Returns the bytes of all arrays (or shapes) in a pytree.

    Example:
        >>> search.tree_bytes({"visits": jax.ShapeDtypeStruct((1024, 7), jnp.int32)})
        28672
    """
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(arrays))
