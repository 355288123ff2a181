import chex
import jax
import numpy as np
import pytest

from azjax import games
from azjax.networks import QNetworkConfig, every_action_value, init_q_network
from azjax.players import QPlayer, choose
from azjax.players.simple import epsilon_greedy

GAME = games.make("tic_tac_toe")
CONFIG = QNetworkConfig(hidden=(8,))
legal_actions = jax.jit(jax.vmap(GAME.legal_action_mask))
draw = jax.jit(epsilon_greedy)


@pytest.fixture(scope="module")
def player():
    network, params = init_q_network(
        jax.random.key(0), GAME.observation_shape, GAME.num_actions, CONFIG
    )
    return QPlayer(GAME, network, jax.tree.map(lambda leaf: leaf + 0.1, params))


def test_the_best_legal_move_is_chosen(player, states):
    choice = choose(player, jax.random.key(0), states)
    observation = jax.jit(jax.vmap(GAME.observe))(states)
    values = np.asarray(
        jax.jit(every_action_value, static_argnums=0)(
            player.network, player.params, observation, states.current_player
        )
    )
    legal = np.asarray(legal_actions(states))
    for row in range(3):
        best = max(np.flatnonzero(legal[row]), key=lambda action: values[row, action])
        assert choice.action[row] == best
        assert choice.value[row] == pytest.approx(values[row, best])
        np.testing.assert_array_equal(choice.policy[row], np.eye(9)[best])


def test_an_illegal_move_with_a_high_value_is_not_chosen():
    values = np.float32([[-np.inf, -0.9, -np.inf, -0.99]] * 20_000)
    for epsilon, actions in ((0.0, {1}), (1.0, {1, 3})):
        found = draw(jax.random.key(1), values, epsilon)
        assert set(np.asarray(found).tolist()) == actions


def test_epsilon_is_the_fraction_of_random_moves():
    values = np.float32([[0.1, 0.5, -np.inf, 0.2]] * 20_000)
    found = np.asarray(draw(jax.random.key(2), values, 0.3))
    shares = np.bincount(found, minlength=4) / len(found)
    # A random move is each of the three legal ones with equal probability; five
    # standard deviations are less than 0.02.
    np.testing.assert_allclose(shares, [0.1, 0.8, 0.0, 0.1], atol=0.02)


def test_moves_are_sampled_from_the_policy_by_the_key(player, states):
    random = QPlayer(GAME, player.network, player.params, 0.3)
    choice, again = (choose(random, jax.random.key(7), states) for _ in range(2))
    chex.assert_trees_all_equal(choice, again)
    policy, legal = np.asarray(choice.policy), np.asarray(legal_actions(states))
    np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-6)
    least = policy.min(axis=1, where=legal, initial=1)
    np.testing.assert_allclose(least, 0.3 / legal.sum(axis=1), atol=1e-6)
    assert (policy[~legal] == 0).all()
