"""What a search needs of the device's memory."""

from typing import Any

import jax
import jax.numpy as jnp

from azjax.checks import check_int
from azjax.search.config import MAX_NODES, SearchConfig
from azjax.search.nodes import empty_nodes
from azjax.search.subtree import empty_tree


def search_bytes(
    config: SearchConfig,
    embedding: Any,
    num_actions: int,
    num_simulations: int,
    *,
    max_depth: int | None = None,
) -> int:
    """Returns how many bytes a search takes, beside the network's own.

    Nothing is computed or allocated. The compiler needs some more, mostly less than
    a quarter and never two fifths in the tests.

    Args:
        config: the search's settings.
        embedding: the states of B games, leaves `[B, ...]`, arrays or their shapes.
        num_actions: A.
        num_simulations: of each search.
        max_depth: longest path from the root (moves), as given to the search.
    """
    check_int("num_simulations", num_simulations, 1, MAX_NODES)
    # For one game, lest the number of all entries be too large for JAX.
    states = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape[1:]), leaf.dtype), embedding
    )
    sizes = {
        "num_actions": num_actions,
        "num_nodes": config.num_nodes(num_simulations),
        "prior_dtype": jnp.dtype(config.prior_dtype),
        "use_solver": config.use_solver,
    }
    batch_size = jax.tree.leaves(embedding)[0].shape[0]
    leaves = min(config.leaves_per_step, num_simulations)
    # Kept trees can be deeper than a search is long.
    depth = (
        config.num_nodes(num_simulations)
        if config.tree_reuse_nodes
        else num_simulations
    )
    depth = min(max_depth or depth, depth)
    # The paths, and the lists of the nodes to update with their values.
    total = 4 * depth * (leaves + 2)
    total += tree_bytes(jax.eval_shape(lambda: empty_nodes(states, **sizes)))
    if config.tree_reuse_nodes:
        # The trees from the last move stay until those for the next one are made.
        total += tree_bytes(jax.eval_shape(lambda: empty_tree(states, **sizes)))
    return batch_size * total


def tree_bytes(arrays: Any) -> int:
    """Returns the bytes of all arrays in a pytree, which may be shapes only."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(arrays))
