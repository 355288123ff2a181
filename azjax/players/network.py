"""A player that follows the network's policy without search."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.networks import Network, Variables, expected_value
from azjax.players.core import Choice
from azjax.players.model import evaluate, evaluate_symmetries
from azjax.search.keys import draw


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
