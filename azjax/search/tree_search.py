"""`search`: an equivalent of `mctx.search` in O(num_simulations) time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.checks import check_int
from azjax.search.conversion import from_tree, to_tree
from azjax.search.keys import keys_of_games, split_keys
from azjax.search.nodes import Nodes, empty_nodes, set_roots
from azjax.search.paths import empty_paths
from azjax.search.simulation import Simulator
from azjax.search.slices import SearchSlice
from azjax.search.types import RootFnOutput, Tree


def search(
    params: Any,
    rng_key: jax.Array,
    *,
    root: RootFnOutput,
    recurrent_fn: Callable[..., Any],
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

    Visit counts and values are those of `mctx.search`, with two differences. A move
    with discount 0 ends the game, and no simulation continues below it. A selection
    function gets a tree of one node, at index 0, with the node's statistics, its priors
    and `extra_data`; `parents`, `children_index` and `embeddings` are None, so that a
    function that reads other nodes raises an error.

    `B` games, `A` actions, `N` nodes.

    Args:
        params: passed on to `recurrent_fn`.
        rng_key: consumed; one key, or `[P]` for P equal parts of the batch.
        root: prior logits `[B, A]` and values `[B]` in float32, states `[B, ...]`.
        recurrent_fn: the model, `(params, rng_key, action[B], embedding[B])` to
            `mctx.RecurrentFnOutput` and the next embedding. Discount 0 ends the game.
        root_action_selection_fn: `(rng_key, tree, node_index)` to the action at the
            root, for one game.
        interior_action_selection_fn: `(rng_key, tree, node_index, depth)` to the action
            at any other node; depth is an int32.
        num_simulations: at least 1.
        max_depth: longest path from the root (moves); default: `num_simulations`.
        invalid_actions: `[B, A]`, nonzero where illegal at the root.
        extra_data: leaves `[B, ...]`, for the selection functions.
        loop_fn: runs the simulations, like `jax.lax.fori_loop`.
        tree: trees to start from, see `subtree`; default: empty trees. The prior logits
            of every root come from `root`; its value and embedding are used only where
            the tree is empty. N must leave room for `num_simulations` new nodes, as in
            trees of `init_trees` and `empty_tree` that went through `subtree`;
            simulations without room are left out.
        caches_selection: whether a node stores its selected action, computed at each
            update of the node and not in each simulation through it: the same result,
            faster. The interior selection must depend on the node's statistics alone,
            not on key or depth.
        use_solver: whether to back up proven wins, draws and losses, and to return a
            `ProvenTree`; see `score_bounds` for the games it is valid for.
        search_slice: the part of a longer search that this call makes; default: all.

    Raises:
        ValueError: a number is too small or too large, or the starting tree has other
            shapes.
    """
    num_nodes = _num_nodes(root, num_simulations, max_depth, tree)
    if invalid_actions is None:
        invalid_actions = jnp.zeros_like(root.prior_logits)
    nodes = _initial_nodes(root, num_nodes, num_simulations, tree, use_solver)
    batch_size = root.value.shape[0]
    base = jnp.arange(batch_size, dtype=jnp.int32) * num_nodes
    simulator = Simulator(
        params=params,
        recurrent_fn=recurrent_fn,
        root_selection=root_action_selection_fn,
        interior_selection=interior_action_selection_fn,
        num_nodes=num_nodes,
        max_depth=_max_depth(max_depth, num_simulations, num_nodes, tree),
        caches_selection=caches_selection,
        base=base,
        root_evaluation=nodes.evaluation[base],
        invalid_actions=jnp.asarray(invalid_actions),
        extra_data=extra_data,
    )
    first_free = base + 1
    if tree is not None:
        nodes = simulator.select_everywhere(nodes)
        first_free = simulator.first_free(nodes)
    budget, num_steps = jnp.int32(num_simulations), num_simulations
    if search_slice is not None:
        budget = jnp.minimum(budget, search_slice.total - search_slice.made)
        num_steps = jnp.minimum(num_steps, budget.max())

    def step(index, carry):
        rng_key, nodes, paths = carry
        rng_key, simulate_key, expand_key = split_keys(rng_key, 3)
        keys = keys_of_games(simulate_key, batch_size)
        nodes, paths = simulator.simulate(
            nodes, paths, keys, expand_key, first_free + index, index < budget
        )
        return rng_key, nodes, paths

    paths = empty_paths(base, simulator.max_depth)
    _, nodes, _ = loop_fn(0, num_steps, step, (rng_key, nodes, paths))
    return to_tree(nodes, num_nodes, invalid_actions, extra_data)


def _num_nodes(
    root: RootFnOutput, num_simulations: int, max_depth: int | None, tree: Tree | None
) -> int:
    """Checks the numbers and returns N."""
    for name, number in (
        ("num_simulations", num_simulations),
        ("max_depth", num_simulations if max_depth is None else max_depth),
    ):
        number = number.item() if isinstance(number, np.integer) else number  # noqa: PLW2901
        check_int(name, number, 1, 2**31 - 2)
    batch_size = root.prior_logits.shape[0]
    num_nodes = num_simulations + 1 if tree is None else tree.node_visits.shape[1]
    if batch_size * num_nodes >= 2**31:
        raise ValueError(
            f"{batch_size} games with {num_nodes} nodes each are more than 2**31 nodes"
        )
    return num_nodes


def _max_depth(
    max_depth: int | None, num_simulations: int, num_nodes: int, tree: Tree | None
) -> int:
    if tree is None:
        return min(max_depth or num_simulations, num_simulations)
    return max_depth or num_nodes  # a starting tree can be deeper


def _initial_nodes(
    root: RootFnOutput,
    num_nodes: int,
    num_simulations: int,
    tree: Tree | None,
    use_solver: bool,
) -> Nodes:
    """Returns the trees at the start, with their roots."""
    num_actions = root.prior_logits.shape[1]
    if tree is None:
        nodes = empty_nodes(
            root.embedding, num_actions, num_nodes, use_solver=use_solver
        )
        return set_roots(nodes, root, num_nodes)
    tree_batch_size, _, tree_actions = tree.children_index.shape
    if (tree_batch_size, tree_actions) != root.prior_logits.shape:
        raise ValueError(
            f"the starting tree is for {tree_batch_size} games with {tree_actions} "
            f"actions, the root for {root.prior_logits.shape}"
        )
    if num_nodes <= num_simulations:
        raise ValueError(
            f"the starting tree has room for {num_nodes} nodes: it must be more than "
            f"num_simulations, {num_simulations}"
        )
    nodes = from_tree(tree)
    if use_solver != (nodes.bounds is not None):
        raise ValueError(
            f"the starting tree must {'' if use_solver else 'not '}be a ProvenTree "
            f"when use_solver={use_solver}"
        )
    return set_roots(nodes, root, num_nodes)
