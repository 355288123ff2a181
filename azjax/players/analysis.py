"""Players that search, and the statistics of their searches."""

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp

from azjax.games import Game, State
from azjax.players.core import Analysis, Branches, Choice
from azjax.players.model import actions_in, by_action
from azjax.search import SearchSlice, Tree

MAX_LINE = 16  # moves of a principal variation
MAX_BRANCHES = 64  # nodes


class SearchPlayer(abc.ABC):
    """A player that searches; its moves are those of its analysis."""

    draws_in_parts: ClassVar[bool] = True

    @abc.abstractmethod
    def analyze(
        self,
        rng_key: jax.Array,
        states: State,
        carry: Tree | None,
        search_slice: SearchSlice | None = None,
    ) -> tuple[Choice, Analysis, Tree | None]:
        """Chooses as `choose_with_carry` does, or as `choose` if `carry` is None, and
        returns the search statistics.

        With a `search_slice` it makes the next `simulations` simulations of a search of
        these positions, whose tree so far is `carry`.
        """

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions, from empty trees; the key is
        consumed."""
        return self.analyze(rng_key, states, None)[0]

    def choose_with_carry(
        self, rng_key: jax.Array, states: State, carry: Tree
    ) -> tuple[Choice, Tree | None]:
        """Chooses a move in each of B positions and returns the searched trees.

        Args:
            rng_key: consumed.
            states: the positions, leaves `[B, ...]`.
            carry: the trees of the last moves. The subtree below each position is
                reused, wherever it is in the tree; a position that is not in its tree
                starts from an empty tree.
        """
        choice, _, carry_after = self.analyze(rng_key, states, carry)
        return choice, carry_after


def analysis_of(
    game: Game, tree: Tree, edge: jax.Array, prior_logits: jax.Array
) -> Analysis:
    """Computes the statistics of searched trees.

    Args:
        game: the game.
        tree: B trees with the edges of `azjax.players.model`.
        edge: `[B]` int32; the edges of the chosen moves.
        prior_logits: `[B, E]` of the root, the lowest float where there is no legal
            action.
    """
    roots = jax.tree.map(lambda leaf: leaf[:, tree.ROOT_INDEX], tree.embeddings)

    def of_actions(numbers: jax.Array) -> jax.Array:
        return by_action(roots, numbers, game.num_actions)

    summary = tree.summary()
    return Analysis(
        prior=of_actions(jax.nn.softmax(prior_logits)),
        visits=of_actions(summary.visit_counts.astype(jnp.int32)),
        action_values=of_actions(
            jnp.where(summary.visit_counts > 0, summary.qvalues, 0.0)
        ),
        line=_line(tree, edge),
        branches=_branches(tree),
    )


def _branches(tree: Tree) -> Branches:
    """Returns the most visited nodes; a parent has more visits than its child, so all
    parents are among them."""
    most = min(MAX_BRANCHES, tree.node_visits.shape[1])
    visits, nodes = jax.lax.top_k(tree.node_visits, most)
    game = jnp.arange(len(nodes))[:, None]
    parents, edges = tree.parents[game, nodes], tree.action_from_parent[game, nodes]
    is_below = (visits > 0) & (nodes != tree.ROOT_INDEX)
    edge = game, parents, edges
    qvalues = (
        tree.children_rewards[edge]
        + tree.children_discounts[edge] * tree.children_values[edge]
    )
    logits = tree.children_prior_logits[game, parents].astype(jnp.float32)
    priors = jnp.take_along_axis(jax.nn.softmax(logits), edges[..., None], axis=-1)
    ranks = (nodes[:, None] == parents[..., None]).argmax(axis=-1)
    return Branches(
        parents=jnp.where(is_below, ranks, -1).astype(jnp.int32),
        actions=jnp.where(is_below, actions_in(tree, parents, edges), -1),
        priors=jnp.where(is_below, priors[..., 0], 1.0),
        visits=visits.astype(jnp.int32),
        values=jnp.where(is_below, qvalues, tree.node_values[game, nodes]),
    )


def _line(tree: Tree, edge: jax.Array) -> jax.Array:
    """Returns `[B, L]`: the chosen move, then always the most visited move."""
    game = jnp.arange(edge.shape[0])

    def descend(carry, _):
        node, edge = carry
        is_node = node >= 0
        shown = jnp.where(is_node, actions_in(tree, node, edge), -1)
        child = jnp.where(is_node, tree.children_index[game, node, edge], -1)
        visits = tree.children_visits[game, child]
        is_searched = (child >= 0) & (visits.max(axis=-1) > 0)
        next_edge = visits.argmax(axis=-1).astype(jnp.int32)
        return (jnp.where(is_searched, child, -1), next_edge), shown

    start = (jnp.zeros_like(edge), edge)
    return jax.lax.scan(descend, start, length=MAX_LINE)[1].T
