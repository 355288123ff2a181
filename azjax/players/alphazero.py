"""Players with a network: by search, and by the policy alone."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.networks import Network, Variables, cast_variables, expected_value
from azjax.players.analysis import Analysis, SearchPlayer, analysis_of
from azjax.players.core import Choice
from azjax.players.model import (
    action_of,
    by_action,
    evaluate,
    evaluate_symmetries,
    is_illegal,
    make_recurrent_fn,
    make_root,
    num_edges,
    to_search,
)
from azjax.search import (
    SearchConfig,
    SearchSlice,
    Tree,
    find,
    improved_value,
    init_trees,
    subtree,
)
from azjax.search.keys import draw


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

    def init_carry(self, states: State) -> Tree | None:
        """Returns B empty trees; None if no trees are kept."""
        embedding = to_search(self.game, states)
        return init_trees(
            self.search, embedding, num_edges(self.game), self.simulations
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
class NetworkPlayer:
    """Chooses the legal move with the highest policy logit.

    With a temperature T above 0 it samples from softmax(logits / T) instead. With
    `use_symmetries` it averages the network's outputs over the symmetries of the game.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    network: Network = struct.field(repr=False)
    variables: Variables = struct.field(repr=False)
    temperature: float = struct.field(pytree_node=False, default=0.0)
    use_symmetries: bool = struct.field(pytree_node=False, default=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed and has no effect
        at temperature 0."""
        outputs = evaluate_symmetries if self.use_symmetries else evaluate
        logits, result = outputs(self.game, self.network, self.variables, states)
        policy = jax.nn.softmax(logits)
        action = logits.argmax(axis=-1)
        if self.temperature:
            legal = jax.vmap(self.game.legal_action_mask)(states)
            top = logits.max(axis=-1, keepdims=True)
            scaled = jnp.where(legal, (logits - top) / self.temperature, -jnp.inf)
            policy = jax.nn.softmax(scaled)
            action = draw(jax.random.categorical, rng_key, scaled)
        value = expected_value(result)
        return Choice(action.astype(jnp.int32), policy, value, draw=result[:, 1])
