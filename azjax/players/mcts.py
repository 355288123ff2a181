"""A player that searches with random playouts."""

import jax
import jax.numpy as jnp
import mctx
from flax import struct

from azjax.games import Game, State, random_action
from azjax.players.analysis import Analysis, SearchPlayer, analysis_of
from azjax.players.core import Choice
from azjax.players.model import (
    SearchState,
    action_of,
    at_edges,
    by_action,
    mover_reward,
    num_edges,
    to_search,
    without_actions,
)
from azjax.search import (
    SearchSlice,
    Tree,
    empty_tree,
    find,
    improved_value,
    subtree,
    uct_policy,
)
from azjax.search.keys import draw, draw_uniform, fold_in, split_keys


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
        num_nodes = self.tree_reuse_nodes + self.simulations
        embedding = to_search(self.game, states)
        return empty_tree(embedding, num_edges(self.game), num_nodes)

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


def make_playout_fn(game: Game) -> mctx.RecurrentFn:
    """Returns the model for search without a network: the value is the result of a
    random playout and the prior is a random order."""

    def recurrent_fn(params, rng_key, edge, embedding):
        del params
        playout_key, order_key = split_keys(rng_key, 2)
        states = without_actions(embedding)
        after = jax.vmap(game.step)(states, action_of(embedding, edge))
        embedding, legal = _to_search(game, after)
        result = playout_results(game, playout_key, after)
        fields = {
            "reward": mover_reward(game, states, after),
            "discount": jnp.where(after.terminated, 0.0, -1.0),
            "prior_logits": _random_order(order_key, legal),
            "value": jnp.where(after.terminated, 0.0, result),
        }
        return mctx.RecurrentFnOutput(**fields), embedding

    return recurrent_fn


def playout_results(game: Game, rng_key: jax.Array, states: State) -> jax.Array:
    """Plays random moves from each of B positions to the end of the game.

    Args:
        game: the game.
        rng_key: consumed; one key, or `[P]` for P equal parts of the batch.
        states: the positions, leaves `[B, ...]`.

    Returns:
        `[B]` float32; results for the players to move in `states`.
    """

    def play_move(carry):
        move, states = carry
        legal = jax.vmap(game.legal_action_mask)(states)
        action = draw(random_action, fold_in(rng_key, move), legal)
        return move + 1, jax.vmap(game.step)(states, action)

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
