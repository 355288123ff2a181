"""The model for search and self-play: a game with a network.

The types are those of mctx: the `embedding` is the game state, `prior_logits` are the
policy logits, and `recurrent_fn` makes a move and evaluates the new position.
"""

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.games import Game, State
from azjax.networks import (
    Network,
    Variables,
    expected_value,
    predict,
    result_probabilities,
)


def evaluate(
    game: Game, network: Network, variables: Variables, states: State
) -> tuple[jax.Array, jax.Array]:
    """Evaluates B positions with the network.

    Returns:
        `[B, A]` float32 policy logits, the lowest float where illegal, and `[B, 3]`
        float32 probabilities of win, draw and loss for the player to move.
    """
    observation = jax.vmap(game.observe)(states)
    prediction = predict(network, variables, observation)
    logits = _mask_illegal(game, prediction.policy_logits, states)
    return logits, result_probabilities(prediction.value_logits)


def evaluate_symmetries(
    game: Game, network: Network, variables: Variables, states: State
) -> tuple[jax.Array, jax.Array]:
    """Evaluates B positions as `evaluate` does, under each of the game's S symmetries.

    Returns:
        The outputs of `evaluate`: means of the policy logits and of the probabilities.
    """
    observation = jax.vmap(game.observe)(states)
    images = [symmetry.observation(observation) for symmetry in game.symmetries]
    prediction = predict(network, variables, jnp.concatenate(images))
    logits, result = jax.tree.map(
        lambda output: output.reshape(len(images), -1, output.shape[-1]),
        (prediction.policy_logits, result_probabilities(prediction.value_logits)),
    )
    inverses = np.stack([np.argsort(symmetry.actions) for symmetry in game.symmetries])
    logits = jnp.take_along_axis(logits, inverses[:, None], axis=-1).mean(axis=0)
    return _mask_illegal(game, logits, states), result.mean(axis=0)


def _mask_illegal(game: Game, logits: jax.Array, states: State) -> jax.Array:
    legal = jax.vmap(game.legal_action_mask)(states)
    return jnp.where(legal, logits, jnp.finfo(jnp.float32).min)


def make_root(
    policy_logits: jax.Array, result: jax.Array, states: State
) -> mctx.RootFnOutput:
    """Returns the search root of B positions from the outputs of `evaluate`."""
    # A dictionary, because type checkers do not see the fields of mctx's types.
    fields = {
        "prior_logits": policy_logits,
        "value": expected_value(result),
        "embedding": states,
    }
    return mctx.RootFnOutput(**fields)


def make_recurrent_fn(game: Game, network: Network) -> mctx.RecurrentFn:
    """Returns the model: `(variables, rng_key, action, states) -> (output, states)`.

    `action` is `[B]` int32, the leaves of `states` are `[B, ...]`. The output has
    `reward`, `discount` and `value`, `[B]`, and `prior_logits`, `[B, A]`.

    Rewards are for the player who moves, values for the player to move next; hence the
    discount is -1. A terminated position is absorbing: reward, value and discount are
    0.
    """

    def recurrent_fn(variables, rng_key, action, states):
        del rng_key  # games and network are deterministic
        after = jax.vmap(game.step)(states, action)
        logits, result = evaluate(game, network, variables, after)
        fields = {
            "reward": mover_reward(game, states, after),
            "discount": jnp.where(after.terminated, 0.0, -1.0),
            "prior_logits": logits,
            "value": jnp.where(after.terminated, 0.0, expected_value(result)),
        }
        return mctx.RecurrentFnOutput(**fields), after

    return recurrent_fn


def mover_reward(game: Game, before: State, after: State) -> jax.Array:
    """Returns `[B]` float32, the reward of each move for the player who made it."""
    rewards = jax.vmap(game.rewards)(after)
    of_mover = jnp.where(before.current_player == 1, rewards[:, 1], rewards[:, 0])
    return jnp.where(before.terminated, 0.0, of_mover)
