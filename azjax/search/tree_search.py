"""`search`: an equivalent of `mctx.search` in O(num_simulations) time.

Visit counts and values are those of `mctx.search`, with two differences. A move with
discount 0 ends the game, and no simulation continues below it. A selection function
gets a tree of one node, at index 0, with the node's statistics, its priors and
`extra_data`; `parents`, `children_index` and `embeddings` are None, so that a function
that reads other nodes raises an error.

A search can start from trees of `init_trees` and `empty_tree` that went through
`subtree`. The prior logits of every root come from `root`; its value and embedding are
used only where the tree is empty. Simulations without room for a node are left out.

With a `ChanceModel` the trees have chance nodes, whose actions are the outcomes, and a
simulation makes up to two nodes. A chance node selects the outcome with the largest
probability / (visits + 1), as mctx does for Stochastic MuZero (Antonoglou et al. 2022,
"Planning in stochastic environments with a learned model"). Its value is the mean of
the values of the visited outcomes, weighted by their probabilities.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.search.conversion import ChanceTree, from_tree, to_tree
from azjax.search.keys import typed_key
from azjax.search.nodes import Nodes, empty_nodes, num_new_nodes, set_roots
from azjax.search.paths import empty_paths
from azjax.search.simulation import Simulator
from azjax.search.types import ChanceModel, Model, RootFnOutput, Tree
from azjax.settings import check_int


class SearchSlice(NamedTuple):
    """Selects the simulations of a longer search that one call makes.

    - All calls of one search take the same root.
    - With noise at the root they take the same key, from which the noise is drawn.
      Without noise each call takes another key: otherwise the calls would repeat the
      same random playouts.
    - The first call starts from an empty tree, each later call from the tree of the
      previous one. Tree reuse is possible only if one call makes the whole search.
    - Every call but the last makes `num_simulations` simulations.

    total: `[B]` int32; simulations of the whole search.
    made: `[B]` int32; simulations of the previous calls.
    """

    total: jax.Array
    made: jax.Array


def search(
    params: Any,
    rng_key: jax.Array,
    *,
    root: RootFnOutput,
    recurrent_fn: Model,
    root_action_selection_fn: Callable[..., Any],
    interior_action_selection_fn: Callable[..., Any],
    num_simulations: int,
    max_depth: int | None = None,
    invalid_actions: jax.Array | None = None,
    extra_data: Any = None,
    loop_fn: Callable[..., Any] = jax.lax.fori_loop,
    tree: Tree | None = None,
    caches_selection: bool = False,
    use_solver: bool = False,
    search_slice: SearchSlice | None = None,
) -> Tree:
    """Searches B trees in one batch and returns them.

    The arguments before `tree` are those of `mctx.search`: `root` has float32 prior
    logits `[B, A]` and values `[B]`, and states `[B, ...]`; `max_depth` is in moves;
    with chance, paths have at most twice as many edges. `invalid_actions` is `[B, A]`;
    `extra_data` has leaves `[B, ...]`. `rng_key` is one key, or `[L]` for L lanes of
    the batch, and is consumed.

    Args:
        tree: trees to start from, with room for `num_simulations` new nodes.
        caches_selection: whether a node stores its interior action when it is updated,
            which is faster; the selection must not depend on key or depth.
        use_solver: whether to back up proven wins, draws and losses, and to return a
            `ProvenTree`; see `score_bounds` for the games it is valid for.
        search_slice: the part of a longer search that this call makes; default: all.

    Example:
        A search that visits the legal actions of a node equally often:

        >>> def select(rng_key, tree, node_index, depth=0):
        ...     is_legal = tree.children_prior_logits[node_index] > -1e9
        ...     visits = tree.children_visits[node_index]
        ...     return jnp.argmin(jnp.where(is_legal, visits, tree.node_visits.max()))
        >>> tree = search.search(
        ...     None,
        ...     jax.random.key(0),
        ...     root=root,
        ...     recurrent_fn=recurrent_fn,
        ...     root_action_selection_fn=select,
        ...     interior_action_selection_fn=select,
        ...     num_simulations=12,
        ... )
        >>> tree.children_visits[:, 0].tolist()
        [[4, 4, 4]]
    """
    for name, number in (
        ("num_simulations", num_simulations),
        ("max_depth", num_simulations if max_depth is None else max_depth),
    ):
        number = number.item() if isinstance(number, np.integer) else number  # noqa: PLW2901
        check_int(name, number, 1, 2**31 - 2)
    has_chance = isinstance(recurrent_fn, ChanceModel)
    if has_chance and use_solver:
        raise ValueError("use_solver must be False for a model with chance")
    batch_size, num_actions = root.prior_logits.shape
    num_new = num_new_nodes(num_simulations, has_chance)
    num_nodes = num_new + 1 if tree is None else tree.node_visits.shape[1]
    if batch_size * num_nodes >= 2**31:
        raise ValueError(
            f"{batch_size} games with {num_nodes} nodes each are more than 2**31 nodes"
        )
    # The trees of all games lie in one array, N nodes each.
    if tree is None:
        size = batch_size * num_nodes
        nodes = empty_nodes(
            root.embedding,
            num_actions,
            size,
            use_solver=use_solver,
            has_chance=has_chance,
        )
    else:
        nodes = _nodes_of(tree, root, num_new, use_solver, has_chance)
    nodes = set_roots(nodes, root, num_nodes)
    if invalid_actions is None:
        invalid_actions = jnp.zeros_like(root.prior_logits)
    base = jnp.arange(root.value.size, dtype=jnp.int32) * num_nodes
    if max_depth:
        max_depth = num_new_nodes(max_depth, has_chance)
    if tree is None:
        first_free = base + 1
        longest = min(max_depth or num_new, num_new)
    else:
        # The entry after the last used node; the root is set in any case.
        end = jnp.arange(1, num_nodes + 1, dtype=jnp.int32)[None]
        first_free = base + jnp.where(tree.node_visits > 0, end, 1).max(axis=1)
        longest = max_depth or num_nodes  # a starting tree can be deeper
    # A slice of a longer search may end earlier, and in each game at another
    # simulation.
    budget, num_steps = jnp.int32(num_simulations), num_simulations
    if search_slice is not None:
        budget = jnp.minimum(num_simulations, search_slice.total - search_slice.made)
        num_steps = budget.max()
    simulator = Simulator(
        params=params,
        recurrent_fn=recurrent_fn.recurrent_fn if has_chance else recurrent_fn,
        has_chance=has_chance,
        root_selection=root_action_selection_fn,
        interior_selection=interior_action_selection_fn,
        caches_selection=caches_selection,
        roots=nodes.rows(base),
        first_free=first_free,
        budget=budget,
        invalid_actions=jnp.asarray(invalid_actions),
        extra_data=extra_data,
    )
    if tree is not None:
        # A tree has no selected actions, which the first simulations follow.
        nodes = simulator.select_everywhere(nodes)
    # A chance node at the end of a path is followed by the leaf.
    paths = empty_paths(base, longest + has_chance, nodes.statistics.packing)
    carry = (typed_key(rng_key), nodes, paths)
    _, nodes, _ = loop_fn(0, num_steps, simulator.simulate, carry)
    return to_tree(nodes, num_nodes, invalid_actions, extra_data)


def _nodes_of(
    tree: Tree, root: RootFnOutput, num_new: int, use_solver: bool, has_chance: bool
) -> Nodes:
    """Checks a starting tree and returns its nodes."""
    tree_batch_size, num_nodes, num_actions = tree.children_index.shape
    if (tree_batch_size, num_actions) != root.prior_logits.shape:
        raise ValueError(
            f"the starting tree is for {tree_batch_size} games with {num_actions} "
            f"actions, the root for {root.prior_logits.shape}"
        )
    if num_nodes <= num_new:
        new = "twice num_simulations" if has_chance else "num_simulations"
        raise ValueError(
            f"the starting tree has room for {num_nodes} nodes: it must be more than "
            f"{new}, {num_new}"
        )
    if has_chance != isinstance(tree, ChanceTree):
        raise ValueError(
            f"the starting tree must {'' if has_chance else 'not '}be a ChanceTree for "
            f"a model with{'' if has_chance else 'out'} chance"
        )
    nodes = from_tree(tree)
    if use_solver != (nodes.bounds is not None):
        raise ValueError(
            f"the starting tree must {'' if use_solver else 'not '}be a ProvenTree "
            f"when use_solver={use_solver}"
        )
    return nodes
