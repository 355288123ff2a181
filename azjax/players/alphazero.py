"""The player that searches with the network."""

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.networks import Network, Variables
from azjax.players.core import Choice
from azjax.players.model import evaluate, make_recurrent_fn, make_root
from azjax.search import SearchConfig, improved_value, run_search


@struct.dataclass
class AlphaZeroPlayer:
    """Searches a tree of `simulations` network evaluations, without noise."""

    game: Game = struct.field(pytree_node=False)
    search: SearchConfig = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)
    network: Network
    variables: Variables

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed.

        It matters only to the algorithm `alphazero`, where it breaks ties.
        """
        logits, result = evaluate(self.game, self.network, self.variables, states)
        output = run_search(
            self.search,
            self.variables,
            rng_key,
            make_root(logits, result, states),
            make_recurrent_fn(self.game, self.network),
            self.simulations,
            invalid_actions=~jax.vmap(self.game.legal_action_mask)(states),
            noise=0.0,
        )
        return Choice(
            action=jnp.asarray(output.action, jnp.int32),
            policy=jnp.asarray(output.action_weights),
            value=improved_value(output),
        )
