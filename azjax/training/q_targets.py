"""What the action values should have been, and how far off they are."""

import jax
import jax.numpy as jnp

from azjax.games import Game
from azjax.networks import QNetwork, QParams, action_value
from azjax.players.q_learning import legal_action_values
from azjax.training.q_play import Transition


def q_targets(
    game: Game, network: QNetwork, params: QParams, transition: Transition
) -> jax.Array:
    """Computes what each move should be worth, to the player who made it.

    `reward + discount * max_a' Q(s', a')` over the legal actions a' (Watkins 1989,
    "Learning from delayed rewards"; Sutton and Barto 2018, equation 6.8). There are no
    rewards before a game's end. Where the other side moves in s' the discount is -1, as
    in negamax: what is best for it is worst for the mover. Q(s', .) is the network of
    the player who moves in s', so that where each side has its own, the first player's
    learns from the second player's and the other way round.

    Args:
        game: what is played.
        network: its structure.
        params: its arrays.
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
    """Computes the mean squared error of the moves' values, where there was a move.

    Args:
        params: the network's arrays.
        game: what is played.
        network: its structure.
        transition: B moves.
        target: `[B]`, a constant: no gradient goes through it.
    """
    state = transition.state
    observation = jax.vmap(game.observe)(state)
    value = action_value(
        network, params, observation, state.current_player, transition.action
    )
    error = jnp.where(transition.is_move, value - jax.lax.stop_gradient(target), 0.0)
    return (error**2).sum() / jnp.maximum(transition.is_move.sum(), 1)
