"""Players that search, with a network or by random playouts, and the statistics of
their searches."""

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp
import mctx
from flax import struct

from azjax.games import Game, State, random_action
from azjax.networks import Network, Variables, cast_variables
from azjax.players.core import Analysis, Branches, Choice
from azjax.players.model import (
    SearchState,
    action_of,
    at_edges,
    by_action,
    check_search,
    draw_chance,
    evaluate,
    is_illegal,
    make_model,
    make_recurrent_fn,
    make_root,
    moves_in,
    num_edges,
    to_search,
)
from azjax.search import (
    ChanceTree,
    Model,
    SearchConfig,
    SearchSlice,
    Tree,
    empty_tree,
    find,
    improved_value,
    init_trees,
    subtree,
    uct_policy,
)
from azjax.search.keys import draw, draw_uniform, fold_in, split_keys
from azjax.search.nodes import num_new_nodes

MAX_LINE = 16  # moves of a principal variation
MAX_BRANCHES = 64  # nodes


class SearchPlayer(abc.ABC):
    """A player that searches; its moves are those of its analysis."""

    draws_in_lanes: ClassVar[bool] = True

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


@struct.dataclass
class AlphaZeroPlayer(SearchPlayer):
    """Searches with `simulations` network evaluations per move, without root noise.

    Keys only break ties between equally visited moves, with the algorithm `alphazero`.
    With `search.tree_reuse_nodes`, `choose_with_carry` starts from the subtree of the
    last search; `choose` always starts from an empty tree.
    """

    game: Game = struct.field(pytree_node=False)
    search: SearchConfig = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)
    network: Network = struct.field(repr=False)
    variables: Variables = struct.field(repr=False)

    def __post_init__(self):
        """Checks that the game can be searched with these settings."""
        check_search(self.game, self.search)

    def init_carry(self, states: State) -> Tree | None:
        """Returns B empty trees; None if no trees are kept."""
        embedding = to_search(self.game, states)
        return init_trees(
            self.search,
            embedding,
            num_edges(self.game),
            self.simulations,
            has_chance=self.game.num_outcomes > 0,
        )

    def analyze(
        self,
        rng_key: jax.Array,
        states: State,
        carry: Tree | None,
        search_slice: SearchSlice | None = None,
    ) -> tuple[Choice, Analysis, Tree | None]:
        """Searches from the trees of the last moves; see `SearchPlayer.analyze`."""
        variables = cast_variables(self.network, self.variables)
        logits, result = evaluate(self.game, self.network, variables, states)
        root = make_root(self.game, logits, result, states)
        prior_logits = jnp.asarray(root.prior_logits)
        known = None
        if carry is not None:
            found = find(carry, root.embedding)
            known = subtree(carry, found, max_nodes=self.search.tree_reuse_nodes)
        output = self.search.policy(explores=False)(
            variables,
            rng_key,
            root,
            make_recurrent_fn(self.game, self.network),
            self.simulations,
            invalid_actions=is_illegal(prior_logits),
            max_depth=self.game.max_moves,
            tree=known,
            search_slice=search_slice,
        )
        choice = Choice(
            action=action_of(root.embedding, output.action),
            policy=by_action(
                root.embedding, output.action_weights, self.game.num_actions
            ),
            value=improved_value(output),
            draw=result[:, 1],
        )
        tree = output.search_tree
        analysis = analysis_of(self.game, tree, output.action, prior_logits)
        if known is None:
            return choice, analysis, None
        kept = tree.replace(
            extra_data=None, root_invalid_actions=known.root_invalid_actions
        )
        return choice, analysis, kept


@struct.dataclass
class MCTSPlayer(SearchPlayer):
    """Searches by UCT, with a random playout from each new node.

    The value is the mean result of the simulations. With `tree_reuse_nodes`,
    `choose_with_carry` starts from the subtree of the last search; `choose` always
    starts from an empty tree.

    simulations: playouts per move.
    exploration: c of UCB1.
    tree_reuse_nodes: maximum number of nodes of a tree that are kept for the next move.
    """

    game: Game = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)
    exploration: float = struct.field(pytree_node=False, default=2**0.5)
    tree_reuse_nodes: int = struct.field(pytree_node=False, default=0)

    def init_carry(self, states: State) -> Tree | None:
        """Returns B empty trees; None if no trees are kept."""
        if not self.tree_reuse_nodes:
            return None
        has_chance = self.game.num_outcomes > 0
        num_nodes = self.tree_reuse_nodes + num_new_nodes(self.simulations, has_chance)
        embedding, edges = to_search(self.game, states), num_edges(self.game)
        return empty_tree(embedding, edges, num_nodes, has_chance=has_chance)

    def analyze(
        self,
        rng_key: jax.Array,
        states: State,
        carry: Tree | None,
        search_slice: SearchSlice | None = None,
    ) -> tuple[Choice, Analysis, Tree | None]:
        """Searches from the trees of the last moves; see `SearchPlayer.analyze`."""
        search_key, order_key = split_keys(rng_key, 2)
        embedding, legal = _to_search(self.game, states)
        known = None
        if carry is not None:
            found = find(carry, embedding)
            known = subtree(carry, found, max_nodes=self.tree_reuse_nodes)
        fields = {
            "prior_logits": _random_order(order_key, legal),
            "value": jnp.zeros(legal.shape[0], jnp.float32),
            "embedding": embedding,
        }
        output = uct_policy(
            None,
            search_key,
            mctx.RootFnOutput(**fields),
            make_playout_fn(self.game),
            self.simulations,
            invalid_actions=~legal,
            exploration=self.exploration,
            max_depth=self.game.max_moves,
            tree=known,
            search_slice=search_slice,
        )
        choice = Choice(
            action=action_of(embedding, output.action),
            policy=by_action(embedding, output.action_weights, self.game.num_actions),
            value=improved_value(output),
        )
        tree = output.search_tree
        # The prior logits only order the moves; the analysis shows a uniform prior.
        uniform_logits = jnp.minimum(tree.children_prior_logits, 0.0)
        analysis = analysis_of(
            self.game,
            tree.replace(children_prior_logits=uniform_logits),
            output.action,
            uniform_logits[:, tree.ROOT_INDEX],
        )
        if known is None:
            return choice, analysis, None
        kept = tree.replace(root_invalid_actions=known.root_invalid_actions)
        return choice, analysis, kept


def make_playout_fn(game: Game) -> Model:
    """Returns the model for search without a network: the value is the result of a
    random playout and the prior is a random order."""

    def look(params, rng_key, states):
        del params
        playout_key, order_key = split_keys(rng_key, 2)
        embedding, legal = _to_search(game, states)
        result = playout_results(game, playout_key, states)
        return embedding, _random_order(order_key, legal), result

    return make_model(game, look)


def playout_results(game: Game, rng_key: jax.Array, states: State) -> jax.Array:
    """Plays random moves from each of B positions to the end of the game.

    Args:
        game: the game.
        rng_key: consumed; one key, or `[L]` for L lanes of the batch.
        states: the positions, leaves `[B, ...]`.

    Returns:
        `[B]` float32; results for the players to move in `states`.
    """

    def play_move(carry):
        move, states = carry
        legal = jax.vmap(game.legal_action_mask)(states)
        action = draw(random_action, fold_in(rng_key, move), legal)
        states = jax.vmap(game.step)(states, action)
        if game.num_outcomes:
            chance_key = fold_in(rng_key, game.max_moves + move)
            states, _ = draw_chance(game, chance_key, states)
        return move + 1, states

    _, ends = jax.lax.while_loop(
        lambda carry: ~carry[1].terminated.all(), play_move, (jnp.int32(0), states)
    )
    rewards = jax.vmap(game.rewards)(ends)
    return jnp.where(states.current_player == 1, rewards[:, 1], rewards[:, 0])


def _to_search(game: Game, states: State) -> tuple[SearchState, jax.Array]:
    """Returns B positions as states of a search, and `[B, E]` bool, which edges are
    legal actions."""
    legal = jax.vmap(game.legal_action_mask)(states)
    embedding = to_search(game, states, legal)
    return embedding, at_edges(embedding, legal, False)


def _random_order(rng_key: jax.Array, legal: jax.Array) -> jax.Array:
    """Returns `[B, E]` random numbers in [0, 1), the lowest number where illegal."""
    order = draw_uniform(rng_key, legal)
    return jnp.where(legal, order, jnp.finfo(jnp.float32).min)


# Statistics


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
        line=_line(game, tree, edge),
        branches=_branches(game, tree),
    )


def _branches(game: Game, tree: Tree) -> Branches:
    """Returns the most visited nodes; a parent has more visits than its child, or as
    many and a lower index, so all parents are among them."""
    most = min(MAX_BRANCHES, tree.node_visits.shape[1])
    visits, nodes = jax.lax.top_k(tree.node_visits, most)
    row = jnp.arange(len(nodes))[:, None]
    parents, edges = tree.parents[row, nodes], tree.action_from_parent[row, nodes]
    is_below = (visits > 0) & (nodes != tree.ROOT_INDEX)
    edge = row, parents, edges
    qvalues = (
        tree.children_rewards[edge]
        + tree.children_discounts[edge] * tree.children_values[edge]
    )
    logits = tree.children_prior_logits[row, parents].astype(jnp.float32)
    priors = jnp.take_along_axis(jax.nn.softmax(logits), edges[..., None], axis=-1)
    ranks = (nodes[:, None] == parents[..., None]).argmax(axis=-1)
    return Branches(
        parents=jnp.where(is_below, ranks, -1).astype(jnp.int32),
        actions=jnp.where(is_below, moves_in(game, tree, parents, edges), -1),
        priors=jnp.where(is_below, priors[..., 0], 1.0),
        visits=visits.astype(jnp.int32),
        values=jnp.where(is_below, qvalues, tree.node_values[row, nodes]),
    )


def _line(game: Game, tree: Tree, edge: jax.Array) -> jax.Array:
    """Returns `[B, L]`: the chosen move, then always the most visited move, up
    to a chance node."""
    row = jnp.arange(edge.shape[0])

    def descend(carry, _):
        node, edge = carry
        is_node = node >= 0
        shown = jnp.where(is_node, moves_in(game, tree, node, edge), -1)
        child = jnp.where(is_node, tree.children_index[row, node, edge], -1)
        visits = tree.children_visits[row, child]
        is_searched = (child >= 0) & (visits.max(axis=-1) > 0)
        if isinstance(tree, ChanceTree):
            is_searched &= ~tree.is_chance[row, child]
        next_edge = visits.argmax(axis=-1).astype(jnp.int32)
        return (jnp.where(is_searched, child, -1), next_edge), shown

    start = (jnp.zeros_like(edge), edge)
    return jax.lax.scan(descend, start, length=MAX_LINE)[1].T
