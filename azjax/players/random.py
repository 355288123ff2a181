"""A player that plays uniformly random legal moves."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State
from azjax.players.core import Choice, choose_uniformly


@struct.dataclass
class RandomPlayer:
    """Chooses every legal move with the same probability."""

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions; the key is consumed."""
        legal = jax.vmap(self.game.legal_action_mask)(states)
        value = jnp.zeros(len(legal), jnp.float32)
        return choose_uniformly(rng_key, legal, value)
