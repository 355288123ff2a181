"""The player that follows the network's policy without looking ahead."""

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.networks import Network, Variables, expected_value
from azjax.players.core import Choice
from azjax.players.model import evaluate


@struct.dataclass
class NetworkPlayer:
    """Chooses the legal move that the policy head likes best."""

    game: Game = struct.field(pytree_node=False)
    network: Network
    variables: Variables

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; no chance is involved."""
        del rng_key
        logits, result = evaluate(self.game, self.network, self.variables, states)
        return Choice(
            action=logits.argmax(axis=-1).astype(jnp.int32),
            policy=jax.nn.softmax(logits),
            value=expected_value(result),
        )
