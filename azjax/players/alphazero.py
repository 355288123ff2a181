"""A player that searches with a network."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.networks import Network, Variables
from azjax.players.analysis import Analysis, analysis_of
from azjax.players.core import Choice
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import (
    SearchConfig,
    SearchSlice,
    Tree,
    find,
    improved_value,
    init_trees,
    subtree,
)


@struct.dataclass
class AlphaZeroPlayer:
    """Searches with `simulations` network evaluations per move, without root noise.

    With `search.tree_reuse_nodes`, `choose_with_carry` starts from the subtree of the
    last search; `choose` always starts from an empty tree.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    search: SearchConfig = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)
    network: Network
    variables: Variables

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions.

        The key is consumed. It only breaks ties between equally visited moves, with the
        algorithm `alphazero`.
        """
        return self.analyze(rng_key, states, None)[0]

    def init_carry(self, states: State) -> Tree | None:
        """Returns B empty trees; None if no trees are kept."""
        return init_trees(self.search, states, self.game.num_actions, self.simulations)

    def choose_with_carry(
        self, rng_key: jax.Array, states: State, carry: Tree
    ) -> tuple[Choice, Tree]:
        """Chooses a move in each of B positions and returns the searched trees.

        Args:
            rng_key: consumed.
            states: the positions, leaves `[B, ...]`.
            carry: the trees of the last moves. The subtree below each position is
                reused, wherever it is in the tree; a position that is not in its tree
                starts from an empty tree.
        """
        choice, _, carry = self.analyze(rng_key, states, carry)
        return choice, carry

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
        known = None
        if carry is not None:
            found = find(carry, states)
            known = subtree(carry, found, max_nodes=self.search.tree_reuse_nodes)
        logits, result = evaluate(self.game, self.network, self.variables, states)
        output = self.search.policy(explores=False)(
            self.variables,
            rng_key,
            make_root(logits, result, states),
            make_recurrent_fn(self.game, self.network),
            self.simulations,
            invalid_actions=~jax.vmap(self.game.legal_action_mask)(states),
            max_depth=self.game.max_moves,
            tree=known,
            search_slice=search_slice,
        )
        choice = Choice(
            action=jnp.asarray(output.action, jnp.int32),
            policy=jnp.asarray(output.action_weights),
            value=improved_value(output),
            draw=result[:, 1],
        )
        tree = output.search_tree
        analysis = analysis_of(tree, choice.action, logits)
        if known is None:
            return choice, analysis, None
        kept = tree.replace(
            extra_data=None, root_invalid_actions=known.root_invalid_actions
        )
        return choice, analysis, kept
