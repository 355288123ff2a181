"""A game with chance in which each outcome is known before."""

import jax
import jax.numpy as jnp
from coin_toss import CoinToss, State


class Heads(CoinToss):
    """Tic-tac-toe in which the coin always falls heads: the players move in turn."""

    name = "heads"

    def chance(self, state: State) -> jax.Array:
        return jnp.where(state.waits, jnp.float32([1, 0, 0]), 0)
