"""The player that searches with the network."""

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
    run_search,
    subtree,
)


@struct.dataclass
class AlphaZeroPlayer:
    """Searches a tree of `simulations` network evaluations, without noise.

    Where `search.tree_reuse_nodes` is set, `think` starts from the subtree of the last
    search; `choose` always starts from an empty tree.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    search: SearchConfig = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)
    network: Network
    variables: Variables

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions.

        The key is consumed; no chance is involved but between moves that were visited
        equally often by the algorithm `alphazero`.
        """
        return self.analyse(rng_key, states, None)[0]

    def start(self, states: State) -> Tree | None:
        """Returns B trees that know nothing, None if none are kept."""
        return init_trees(self.search, states, self.game.num_actions, self.simulations)

    def think(
        self, rng_key: jax.Array, states: State, memory: Tree
    ) -> tuple[Choice, Tree]:
        """Chooses a move in each of B positions, and returns the trees that it saw.

        Args:
            rng_key: consumed.
            states: the positions, leaves `[B, ...]`.
            memory: the trees of the last moves. What lies below the positions is used,
                wherever in the tree they are; a position that is not in its tree is
                searched from nothing.
        """
        choice, _, memory = self.analyse(rng_key, states, memory)
        return choice, memory

    def analyse(
        self,
        rng_key: jax.Array,
        states: State,
        memory: Tree | None,
        search_slice: SearchSlice | None = None,
    ) -> tuple[Choice, Analysis, Tree | None]:
        """Chooses as `think` does, or without a memory as `choose` does, and tells
        what the search saw.

        With a `search_slice` it makes the next `simulations` simulations of a search
        of these positions, whose tree so far is the memory.
        """
        known = None
        if memory is not None:
            found = find(memory, states)
            known = subtree(memory, found, max_nodes=self.search.tree_reuse_nodes)
        logits, result = evaluate(self.game, self.network, self.variables, states)
        output = run_search(
            self.search,
            self.variables,
            rng_key,
            make_root(logits, result, states),
            make_recurrent_fn(self.game, self.network),
            self.simulations,
            invalid_actions=~jax.vmap(self.game.legal_action_mask)(states),
            explores=False,
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
