"""A player that follows learned action values."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from azjax.games import Game, State, random_action
from azjax.networks import QNetwork, QParams, every_action_value
from azjax.players.core import Choice, uniform
from azjax.search.keys import draw, draw_uniform, split_keys


@struct.dataclass
class QPlayer:
    """Chooses the first legal move with the highest value.

    epsilon: `[]` probability of a random legal move instead.
    """

    draws_in_parts: ClassVar[bool] = True
    game: Game = struct.field(pytree_node=False)
    network: QNetwork = struct.field(repr=False)
    params: QParams = struct.field(repr=False)
    epsilon: jax.Array | float = 0.0

    def choose(self, rng_key: jax.Array, states: State) -> Choice:
        """Chooses a move in each of B positions.

        The key is consumed and has no effect if `epsilon` is 0. The policy is the
        distribution that is sampled.
        """
        values = legal_action_values(self.game, self.network, self.params, states)
        legal = jnp.isfinite(values)
        greedy = jax.nn.one_hot(
            values.argmax(axis=-1), legal.shape[-1], dtype=jnp.float32
        )
        return Choice(
            action=epsilon_greedy(rng_key, values, self.epsilon),
            policy=(1 - self.epsilon) * greedy + self.epsilon * uniform(legal),
            value=values.max(axis=-1),
        )


def legal_action_values(
    game: Game, network: QNetwork, params: QParams, states: State
) -> jax.Array:
    """Returns `[B, A]` action values for the player to move, in [-1, 1]; -inf where
    illegal.

    Args:
        game: the game.
        network: structure of the network.
        params: parameters of the network.
        states: the positions, leaves `[B, ...]`, none of them terminated.
    """
    observation = jax.vmap(game.observe)(states)
    values = every_action_value(network, params, observation, states.current_player)
    return jnp.where(jax.vmap(game.legal_action_mask)(states), values, -jnp.inf)


def epsilon_greedy(
    rng_key: jax.Array, values: jax.Array, epsilon: jax.Array | float
) -> jax.Array:
    """Returns `[B]` int32: the best action, or with probability `epsilon` a random
    legal action.

    Args:
        rng_key: consumed; one key, or `[P]` for P equal parts of the batch.
        values: `[B, A]`, -inf where illegal.
        epsilon: `[]` in [0, 1].
    """
    explore_key, action_key = split_keys(rng_key, 2)
    best = values.argmax(axis=-1)
    explores = draw_uniform(explore_key, best) < epsilon
    random = draw(random_action, action_key, jnp.isfinite(values))
    return jnp.where(explores, random, best).astype(jnp.int32)
