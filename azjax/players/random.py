"""A player that plays uniformly random legal moves."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State, random_action
from azjax.players.core import Choice, uniform
from azjax.search.keys import draw


@struct.dataclass
class RandomPlayer:
    """Chooses every legal move with the same probability."""

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        legal = jax.vmap(self.game.legal_action_mask)(states)
        policy = uniform(legal)
        value = jnp.zeros(policy.shape[:1], jnp.float32)
        return Choice(draw(random_action, rng_key, legal), policy, value)
