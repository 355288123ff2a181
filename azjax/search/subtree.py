"""Tree reuse: the subtree of a move becomes the tree of the next search."""

from typing import Any

import jax
import jax.numpy as jnp
import mctx

from azjax.search.config import SearchConfig
from azjax.search.conversion import ChanceTree, ProvenTree, to_tree
from azjax.search.nodes import NO_PARENT, UNVISITED, empty_nodes
from azjax.search.score_bounds import WIN
from azjax.search.types import Tree
from azjax.settings import check_int


def empty_tree(
    embedding: Any,
    num_actions: int,
    num_nodes: int,
    *,
    use_solver: bool = False,
    has_chance: bool = False,
) -> Tree:
    """Returns B trees without nodes, for a search to start from.

    Args:
        embedding: the states, leaves `[B, ...]`; only their shapes and dtypes are used.
        num_actions: A.
        num_nodes: N, the capacity of each tree.
        use_solver: as in `search`.
        has_chance: whether the trees are for a `ChanceModel`.
    """
    check_int("num_nodes", num_nodes, 1, 2**31 - 2)
    batch_size = jax.tree.leaves(embedding)[0].shape[0]
    size = batch_size * num_nodes
    nodes = empty_nodes(
        embedding, num_actions, size, use_solver=use_solver, has_chance=has_chance
    )
    return to_tree(
        nodes, num_nodes, jnp.zeros((batch_size, num_actions), jnp.float32), None
    )


def init_trees(
    config: SearchConfig,
    embedding: Any,
    num_actions: int,
    num_simulations: int,
    *,
    has_chance: bool = False,
) -> Tree | None:
    """Returns empty trees that are kept from move to move; None without tree reuse.

    They have room for the kept nodes and those of one search. After each search,
    `subtree(tree, node_index, max_nodes=config.tree_reuse_nodes)` makes the next tree.

    Args:
        config: the search's settings.
        embedding: the states, leaves `[B, ...]`; only their shapes are used.
        num_actions: A.
        num_simulations: of each search.
        has_chance: whether the trees are for a `ChanceModel`.

    Example:
        >>> config = search.GumbelConfig(tree_reuse_nodes=16)
        >>> search.init_trees(config, root.embedding, 3, 32).node_visits.shape
        (1, 48)
    """
    if not config.tree_reuse_nodes:
        return None
    return empty_tree(
        embedding,
        num_actions,
        config.num_nodes(num_simulations, has_chance),
        use_solver=config.use_solver,
        has_chance=has_chance,
    )


def subtree(tree: Tree, node_index: jax.Array, *, max_nodes: int) -> Tree:
    """Returns the subtrees of some nodes, which become the roots, with their visits.

    The result has the shape of `tree` and room for `N - max_nodes` new nodes, so that
    one compiled search serves all moves of all games. Nodes keep their order.
    `extra_data` is None and `root_invalid_actions` is zero: a search sets them. The
    value of a chance node is, from its next visit on, the mean over the kept outcomes.

    Args:
        tree: searched trees, N nodes each.
        node_index: `[B]` int32; the new roots, such as the children of the moves made,
            `tree.children_index[range(B), 0, action]`. A negative index, for a finished
            game or an unvisited move, gives an empty tree.
        max_nodes: maximum number of nodes kept in each tree, the most visited ones.

    Example:
        >>> child = output.search_tree.children_index[jnp.arange(1), 0, output.action]
        >>> tree = search.subtree(output.search_tree, child, max_nodes=16)
        >>> tree.embeddings[:, 0].tolist()  # stones left after the move
        [4]
    """
    batch_size, num_nodes, _ = tree.children_index.shape
    check_int("max_nodes", max_nodes, 1, num_nodes)
    dtype = jnp.asarray(node_index).dtype
    if jnp.shape(node_index) != (batch_size,) or not jnp.issubdtype(dtype, jnp.integer):
        raise ValueError(
            f"node_index must be [{batch_size}] integers, one for each tree: "
            f"{node_index!r}"
        )
    keeps = _is_below(tree, node_index)
    if max_nodes < num_nodes:
        keeps = _most_visited(tree.node_visits, keeps, max_nodes)
    game = jnp.arange(batch_size)[:, None]
    # The new index of each node, -1 if it is not kept; and the old index of each node
    # of the new trees, N where they are unused.
    new_index = jnp.where(keeps, jnp.cumsum(keeps, axis=1, dtype=jnp.int32) - 1, -1)
    source = jnp.full((batch_size, num_nodes), num_nodes, jnp.int32)
    source = source.at[game, jnp.where(keeps, new_index, num_nodes)].set(
        jnp.arange(num_nodes, dtype=jnp.int32)[None], mode="drop"
    )

    def move(leaf: jax.Array, fill: float = 0) -> jax.Array:
        return leaf.at[game, source].get(mode="fill", fill_value=fill)

    def renumber(index: jax.Array) -> jax.Array:
        """Returns `[B, ...]` new indices of old ones, -1 for nodes not kept."""
        flat = jnp.maximum(index, 0).reshape(batch_size, -1)
        return jnp.where(index >= 0, new_index[game, flat].reshape(index.shape), -1)

    is_root = jnp.arange(num_nodes) == 0
    action = move(tree.action_from_parent, NO_PARENT)
    child = renumber(move(tree.children_index, UNVISITED))
    is_child = child >= 0
    fields = {
        "node_visits": move(tree.node_visits),
        "raw_values": move(tree.raw_values),
        "node_values": move(tree.node_values),
        "parents": jnp.where(is_root, NO_PARENT, renumber(move(tree.parents, -1))),
        "action_from_parent": jnp.where(is_root, NO_PARENT, action),
        "children_index": child,
        "children_prior_logits": move(tree.children_prior_logits),
        "children_values": jnp.where(is_child, move(tree.children_values), 0),
        "children_visits": jnp.where(is_child, move(tree.children_visits), 0),
        "children_rewards": jnp.where(is_child, move(tree.children_rewards), 0),
        "children_discounts": jnp.where(is_child, move(tree.children_discounts), 0),
        "embeddings": jax.tree.map(move, tree.embeddings),
        "root_invalid_actions": jnp.zeros_like(tree.root_invalid_actions, jnp.float32),
        "extra_data": None,
    }
    if isinstance(tree, ChanceTree):
        return ChanceTree(**fields, is_chance=move(tree.is_chance))
    if isinstance(tree, ProvenTree):
        bounds = {"lower": move(tree.lower, -WIN), "upper": move(tree.upper, WIN)}
        return ProvenTree(**fields, **bounds)
    return mctx.Tree(**fields)


def find(tree: Tree, embedding: Any) -> jax.Array:
    """Returns `[B]` int32, the node with a given state, -1 where there is none.

    States are compared bit for bit; of several equal ones the most visited node counts.

    Args:
        tree: searched trees.
        embedding: the states, leaves `[B, ...]`.

    Example:
        >>> node_index = search.find(output.search_tree, jnp.array([4]))
        >>> output.search_tree.embeddings[0, node_index].tolist()
        [4]
    """
    same = tree.node_visits > 0
    for leaf, wanted in zip(
        jax.tree.leaves(tree.embeddings), jax.tree.leaves(embedding), strict=True
    ):
        equal = leaf == wanted[:, None]
        same &= equal.all(axis=tuple(range(2, equal.ndim)))
    index = jnp.argmax(jnp.where(same, tree.node_visits, 0), axis=1)
    return jnp.where(same.any(axis=1), index, -1).astype(jnp.int32)


def _is_below(tree: Tree, node_index: jax.Array) -> jax.Array:
    """Returns `[B, N]` bool, whether a node is `node_index` or lies below it."""
    batch_size, num_nodes = tree.parents.shape
    game = jnp.arange(batch_size)[:, None]
    index = jnp.arange(num_nodes, dtype=jnp.int32)
    ancestor = jnp.where(tree.parents < 0, index, tree.parents)
    is_below = index == node_index[:, None]
    # Each round doubles the distance to the ancestor.
    for _ in range((num_nodes - 1).bit_length()):
        is_below |= is_below[game, ancestor]
        ancestor = ancestor[game, ancestor]
    return is_below


def _most_visited(visits: jax.Array, keeps: jax.Array, max_nodes: int) -> jax.Array:
    """Restricts the kept nodes to the `max_nodes` most visited.

    A node has more visits than any of its children, or as many and a lower index, so
    that every kept child has a kept parent.
    """
    visits = jnp.where(keeps, visits, 0)
    least = jax.lax.top_k(visits, max_nodes)[0][:, -1:]
    above = visits > least
    ties = keeps & (visits == least)
    room = max_nodes - above.sum(axis=1, keepdims=True)
    return above | (ties & (jnp.cumsum(ties, axis=1) <= room))
