"""The searches of a move of self-play: full and fast ones, in trees that are kept."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.games import Game
from azjax.networks import Network
from azjax.players.model import make_recurrent_fn
from azjax.search import (
    SearchConfig,
    SearchSlice,
    Tree,
    improved_value,
    run_search,
    subtree,
)
from azjax.search.keys import draw, split_batch, split_keys
from azjax.training.config import SelfPlayConfig


class SearchResult(NamedTuple):
    """What the searches of B positions found.

    action: `[B]` int32; the best move.
    policy: `[B, A]` float32; the improved policy.
    value: `[B]` float32; for the player to move.
    visits: `[B]` float32; simulations that it rests on.
    is_full: `[B]` bool; whether the search was a full one.
    tree: the trees; None if none are kept.
    """

    action: jax.Array
    policy: jax.Array
    value: jax.Array
    visits: jax.Array
    is_full: jax.Array
    tree: Tree | None


def make_searches(
    game: Game,
    network: Network,
    search: SearchConfig,
    config: SelfPlayConfig,
):
    """Returns `(variables, num_simulations, rng_key, root, tree) -> Found`, which
    searches B positions.

    The positions are those of L lanes, and `rng_key` is `[L]`. In each lane
    `config.full_games_of(B / L)` positions, drawn by its key, are searched with
    `num_simulations` and exploring, the others with `config.fast_simulations` to play
    well. `num_simulations` is an int32, at most `config.longest_search`. `tree` is
    where to begin, or None.
    """
    recurrent_fn = make_recurrent_fn(game, network)

    def search_part(
        variables, num_simulations, rng_key, root, tree, *, is_full: bool
    ) -> SearchResult:
        part = None
        if is_full:
            made = jnp.zeros(root.value.shape, jnp.int32)
            part = SearchSlice(total=made + num_simulations, made=made)
        output = run_search(
            search,
            variables,
            rng_key,
            root,
            recurrent_fn,
            config.longest_search if is_full else config.fast_simulations,
            invalid_actions=~jax.vmap(game.legal_action_mask)(root.embedding),
            explores=is_full,
            max_depth=game.max_moves,
            tree=tree,
            search_slice=part,
        )
        action = jnp.asarray(output.action)
        return SearchResult(
            action=action,
            policy=jnp.asarray(output.action_weights),
            value=improved_value(output),
            visits=output.search_tree.summary().visit_counts.sum(axis=-1),
            is_full=jnp.full(action.shape, is_full),
            tree=None if tree is None else output.search_tree.replace(extra_data=None),
        )

    def search_all(variables, num_simulations, rng_key, root, tree) -> SearchResult:
        num_positions, num_lanes = root.value.size, rng_key.size
        per_lane = num_positions // num_lanes
        num_full = config.full_games_of(per_lane)
        if num_full == per_lane:
            return search_part(
                variables, num_simulations, rng_key, root, tree, is_full=True
            )
        order_key, full_key, fast_key = split_keys(rng_key, 3)
        order = draw(jax.random.permutation, order_key, jnp.arange(num_positions))
        order = split_batch(order, num_lanes)
        full, fast = order[:, :num_full].ravel(), order[:, num_full:].ravel()
        found = [
            search_part(
                variables,
                num_simulations,
                key,
                *jax.tree.map(lambda leaf: leaf[games], (root, tree)),  # noqa: B023
                is_full=is_full,
            )
            for games, key, is_full in (
                (full, full_key, True),
                (fast, fast_key, False),
            )
        ]
        place = jnp.argsort(jnp.concatenate([full, fast]))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts)[place], *found)

    return search_all


def after_moves(
    tree: Tree, action: jax.Array, finished: jax.Array, max_nodes: int
) -> Tree:
    """Returns the trees of the positions after the moves, empty where a game is over.

    Args:
        tree: the searched trees.
        action: `[B]` int32; the moves.
        finished: `[B]` bool.
        max_nodes: kept in each tree.
    """
    children = tree.children_index[jnp.arange(action.size), tree.ROOT_INDEX, action]
    new_root = jnp.where(finished, tree.UNVISITED, children)
    return subtree(tree, new_root, max_nodes=max_nodes)
