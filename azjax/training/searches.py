"""The searches of a move of self-play: full and fast ones, with reused trees."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azjax.games import Game
from azjax.networks import Network
from azjax.players.model import is_illegal, make_recurrent_fn
from azjax.search import (
    SearchConfig,
    SearchSlice,
    Tree,
    improved_value,
    subtree,
)
from azjax.search.keys import draw, split_batch, split_keys
from azjax.training.config import SelfPlayConfig


class SearchResult(NamedTuple):
    """Results of the searches of B positions, with E edges (`azjax.players.edges`).

    edge: `[B]` int32; the best move.
    policy: `[B, E]` float32; the improved policy.
    value: `[B]` float32; for the player to move.
    qvalues: `[B, E]` float32; the search's value of each edge, `value` for edges
        without visits.
    is_visited: `[B, E]` bool; whether the edge has visits.
    visits: `[B]` float32; simulations in the tree, reused ones included.
    is_full: `[B]` bool; whether the search was a full one.
    tree: the trees; None without tree reuse.
    """

    edge: jax.Array
    policy: jax.Array
    value: jax.Array
    qvalues: jax.Array
    is_visited: jax.Array
    visits: jax.Array
    is_full: jax.Array
    tree: Tree | None


def make_searches(
    game: Game,
    network: Network,
    search: SearchConfig,
    config: SelfPlayConfig,
):
    """Returns `(variables, num_simulations, rng_key, root, tree) -> SearchResult`.

    It searches the B positions of L lanes.

    In each lane `config.full_games_of(B / L)` positions, drawn at random, get a full
    search: `num_simulations` (int32, at most `config.longest_search`) with exploration.
    The others get `config.fast_simulations` without exploration. `rng_key` is `[L]`;
    `tree` holds the reused trees, or is None.
    """
    return _Searches(game, make_recurrent_fn(game, network), search, config).search_all


class _Searches(NamedTuple):
    """Static arguments of the searches; the methods are pure functions of arrays."""

    game: Game
    recurrent_fn: Callable[..., Any]
    search: SearchConfig
    config: SelfPlayConfig

    def search_all(
        self, variables, num_simulations, rng_key, root, tree
    ) -> SearchResult:
        """Divides the positions into full and fast searches; see `make_searches`."""
        num_positions, num_lanes = root.value.size, rng_key.size
        per_lane = num_positions // num_lanes
        num_full = self.config.full_games_of(per_lane)
        if num_full == per_lane:
            return self.search_positions(
                variables, num_simulations, rng_key, root, tree, is_full=True
            )
        order_key, full_key, fast_key = split_keys(rng_key, 3)
        order = draw(jax.random.permutation, order_key, jnp.arange(num_positions))
        order = split_batch(order, num_lanes)
        full, fast = order[:, :num_full].ravel(), order[:, num_full:].ravel()

        def search_these(positions, rng_key, *, is_full: bool) -> SearchResult:
            part = jax.tree.map(lambda leaf: leaf[positions], (root, tree))
            return self.search_positions(
                variables, num_simulations, rng_key, *part, is_full=is_full
            )

        results = (
            search_these(full, full_key, is_full=True),
            search_these(fast, fast_key, is_full=False),
        )
        place = jnp.argsort(jnp.concatenate([full, fast]))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts)[place], *results)

    def search_positions(
        self, variables, num_simulations, rng_key, root, tree, *, is_full: bool
    ) -> SearchResult:
        """Searches all given positions, with full searches or with fast ones."""
        part = None
        if is_full:
            # The static argument is the maximum, the traced number stops earlier.
            made = jnp.zeros(root.value.shape, jnp.int32)
            part = SearchSlice(total=made + num_simulations, made=made)
        output = self.search.policy(explores=is_full)(
            variables,
            rng_key,
            root,
            self.recurrent_fn,
            self.config.longest_search if is_full else self.config.fast_simulations,
            invalid_actions=is_illegal(jnp.asarray(root.prior_logits)),
            max_depth=self.game.max_moves,
            tree=tree,
            search_slice=part,
        )
        edge = jnp.asarray(output.action)
        summary = output.search_tree.summary()
        is_visited = summary.visit_counts > 0
        value = improved_value(output)
        return SearchResult(
            edge=edge,
            policy=jnp.asarray(output.action_weights),
            value=value,
            qvalues=jnp.where(is_visited, summary.qvalues, value[:, None]),
            is_visited=is_visited,
            visits=summary.visit_counts.sum(axis=-1),
            is_full=jnp.full(edge.shape, is_full),
            tree=None if tree is None else output.search_tree.replace(extra_data=None),
        )


def after_moves(
    tree: Tree, edge: jax.Array, finished: jax.Array, max_nodes: int
) -> Tree:
    """Returns the subtrees of the moves, empty where the game has ended.

    Args:
        tree: the searched trees.
        edge: `[B]` int32; the moves.
        finished: `[B]` bool.
        max_nodes: maximum size of each subtree.
    """
    children = tree.children_index[jnp.arange(edge.size), tree.ROOT_INDEX, edge]
    new_root = jnp.where(finished, tree.UNVISITED, children)
    return subtree(tree, new_root, max_nodes=max_nodes)
