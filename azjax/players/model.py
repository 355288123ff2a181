"""The model for search and self-play: a game with a network.

The types are those of mctx: the `embedding` is the game state, `prior_logits` are the
policy logits, and `recurrent_fn` makes a move and evaluates the new position. Its
actions are edges, see `azjax.players.edges`.
"""

from collections.abc import Callable

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
from azjax.players.edges import (
    SearchState,
    action_of,
    at_edges,
    to_search,
    without_actions,
)

_LOWEST = np.finfo(np.float32).min


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
    return jnp.where(legal, logits, _LOWEST)


def is_illegal(logits: jax.Array) -> jax.Array:
    """Returns bool, where outputs of `evaluate`, or prior logits made of them, are
    those of illegal actions, or of no action; NaN, of a broken network, is not."""
    return logits == _LOWEST


def make_root(
    game: Game, policy_logits: jax.Array, result: jax.Array, states: State
) -> mctx.RootFnOutput:
    """Returns the search root of B positions from the outputs of `evaluate`.

    Its `prior_logits` are `[B, E]`, the lowest float where there is no legal action.
    """
    embedding, prior_logits = _with_edges(game, states, policy_logits)
    # A dictionary, because type checkers do not see the fields of mctx's types.
    fields = {
        "prior_logits": prior_logits,
        "value": expected_value(result),
        "embedding": embedding,
    }
    return mctx.RootFnOutput(**fields)


def _with_edges(
    game: Game, states: State, policy_logits: jax.Array
) -> tuple[SearchState, jax.Array]:
    """Returns B positions as states of a search, and their `[B, E]` prior logits."""
    embedding = to_search(game, states, ~is_illegal(policy_logits))
    return embedding, at_edges(embedding, policy_logits, _LOWEST)


def make_recurrent_fn(game: Game, network: Network) -> mctx.RecurrentFn:
    """Returns the model: `(variables, rng_key, edge, states) -> (output, states)`; see
    `recurrent_fn_of`."""

    def evaluate_after(variables, rng_key, states):
        del rng_key
        return evaluate(game, network, variables, states)

    return recurrent_fn_of(game, evaluate_after)


def recurrent_fn_of(
    game: Game,
    evaluate: Callable[[Variables, jax.Array, State], tuple[jax.Array, jax.Array]],
) -> mctx.RecurrentFn:
    """Returns the model: `(variables, rng_key, edge, states) -> (output, states)`.

    `edge` is `[B]` int32, the leaves of `states` are `[B, ...]`. The output has
    `reward`, `discount` and `value`, `[B]`, and `prior_logits`, `[B, E]`.

    Rewards are for the player who moves, values for the player to move next; hence the
    discount is -1. A terminated position is absorbing: reward, value and discount are
    0.

    Args:
        game: the game.
        evaluate: `(variables, rng_key, states)` to the outputs of `evaluate`.
    """

    def recurrent_fn(variables, rng_key, edge, embedding):
        states = without_actions(embedding)
        after = jax.vmap(game.step)(states, action_of(embedding, edge))
        logits, result = evaluate(variables, rng_key, after)
        embedding, prior_logits = _with_edges(game, after, logits)
        fields = {
            "reward": mover_reward(game, states, after),
            "discount": jnp.where(after.terminated, 0.0, -1.0),
            "prior_logits": prior_logits,
            "value": jnp.where(after.terminated, 0.0, expected_value(result)),
        }
        return mctx.RecurrentFnOutput(**fields), embedding

    return recurrent_fn


def mover_reward(game: Game, before: State, after: State) -> jax.Array:
    """Returns `[B]` float32, the reward of each move for the player who made it."""
    rewards = jax.vmap(game.rewards)(after)
    of_mover = jnp.where(before.current_player == 1, rewards[:, 1], rewards[:, 0])
    return jnp.where(before.terminated, 0.0, of_mover)
