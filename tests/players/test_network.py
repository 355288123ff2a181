import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.players import NetworkPlayer


def preferring(trained, policy_bias, value_bias) -> NetworkPlayer:
    """A player that says the same of every position."""
    variables = jax.tree.map(jnp.zeros_like, trained.variables)
    variables.params["policy_head"]["linear"]["bias"] = jnp.array(policy_bias)
    variables.params["value_head"]["linear"]["bias"] = jnp.array(value_bias)
    return NetworkPlayer(trained.game, trained.network, variables)


def test_the_likeliest_legal_move_is_chosen(trained, states):
    # a3 is taken in all three positions, b2 in two of them.
    player = preferring(trained, [9.0, 0, 0, 0, 8, 7, 0, 0, 0], [0.0, 0, 0])
    choice = player.choose(jax.random.key(0), states)
    np.testing.assert_array_equal(choice.action, [4, 5, 5])


def test_the_policy_is_the_networks_over_the_legal_moves(trained, states):
    player = preferring(trained, np.log([9.0, 1, 1, 1, 3, 1, 1, 1, 1]), [0.0, 0, 0])
    choice = player.choose(jax.random.key(0), states)
    np.testing.assert_allclose(choice.policy[0] * 10, [0, 1, 1, 1, 3, 1, 1, 1, 1], 1e-5)
    np.testing.assert_allclose(choice.policy[1] * 7, [0, 1, 1, 1, 0, 1, 1, 1, 1], 1e-5)


def test_the_value_is_the_chance_to_win_less_that_to_lose(trained, states):
    player = preferring(trained, [0.0] * 9, np.log([0.5, 0.3, 0.2]))
    choice = player.choose(jax.random.key(0), states)
    np.testing.assert_allclose(choice.value, [0.3] * 3, rtol=1e-5)


def test_no_chance_is_involved(trained, states):
    player = NetworkPlayer(trained.game, trained.network, trained.variables)
    choices = [player.choose(jax.random.key(seed), states) for seed in (1, 2)]
    chex.assert_trees_all_equal(*choices)
