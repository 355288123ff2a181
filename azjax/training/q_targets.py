"""Targets and loss of Q-learning."""

import jax
import jax.numpy as jnp

from azjax.games import Game
from azjax.networks import QNetwork, QParams, action_value
from azjax.players.q_learning import legal_action_values
from azjax.training.q_play import Transition


def q_targets(
    game: Game, network: QNetwork, params: QParams, transition: Transition
) -> jax.Array:
    """Computes the target of each move's value, for the player who made it.

    `reward + discount * max_a' Q(s', a')` over the legal actions a' (Watkins 1989,
    "Learning from delayed rewards"; Sutton and Barto 2018, equation 6.8). Rewards are 0
    before a game's end. If the other side moves in s', the discount is -1, as in
    negamax. Q(s', .) is the network of the player to move in s': with a network per
    side, the first player's learns from the second player's and vice versa.

    Args:
        game: the game.
        network: its structure.
        params: its parameters.
        transition: B moves.

    Returns:
        `[B]` targets in [-1, 1].
    """
    # A finished position may have no legal action; its value is not used.
    is_over = transition.discount == 0
    values = legal_action_values(game, network, params, transition.next_state)
    best = jnp.where(is_over, 0.0, values.max(axis=-1))
    return transition.reward + transition.discount * best


def q_loss(
    params: QParams,
    game: Game,
    network: QNetwork,
    transition: Transition,
    target: jax.Array,
) -> jax.Array:
    """Computes the mean squared error of the values of the learner's moves.

    Args:
        params: network parameters.
        game: the game.
        network: its structure.
        transition: B moves.
        target: `[B]`, treated as a constant.
    """
    state = transition.state
    observation = jax.vmap(game.observe)(state)
    value = action_value(
        network, params, observation, state.current_player, transition.action
    )
    error = jnp.where(transition.is_move, value - jax.lax.stop_gradient(target), 0.0)
    return (error**2).sum() / jnp.maximum(transition.is_move.sum(), 1)
