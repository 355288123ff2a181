import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.networks import (
    QNetworkConfig,
    action_value,
    every_action_value,
    init_q_network,
)

SHAPE, NUM_ACTIONS = (2, 3, 2), 5
FORMS = ("state", "pair")


def build(form, *, separate=False):
    """Returns a network whose last layers are not 0, as they are initially."""
    config = QNetworkConfig(form=form, hidden=(7, 6), separate=separate)
    network, params = init_q_network(jax.random.key(1), SHAPE, NUM_ACTIONS, config)
    rng = np.random.default_rng(2)
    noisy = jax.tree.map(
        lambda leaf: jnp.asarray(leaf + 0.3 * rng.normal(size=leaf.shape), leaf.dtype),
        jax.device_get(params),
    )
    return network, noisy


@pytest.fixture(scope="module")
def observation():
    return jax.random.bernoulli(jax.random.key(3), 0.5, (4, *SHAPE)).astype(jnp.float32)


PLAYER = np.array([0, 1, 1, 0], np.int8)


def dense(x, layer):
    return x @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"])


def relu(x):
    return np.maximum(x, 0)


def test_state_input_is_a_dense_network_on_the_position(observation):
    network, (params,) = build("state")
    layers = params["layers"]
    x = np.asarray(observation).reshape(4, -1)
    x = relu(dense(x, layers["hidden"][0]))
    x = relu(dense(x, layers["hidden"][1]))
    expected = np.tanh(dense(x, layers["out"]))
    found = every_action_value(network, (params,), observation, PLAYER)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_pair_input_is_a_dense_network_on_position_and_action(observation):
    network, (params,) = build("pair")
    found = every_action_value(network, (params,), observation, PLAYER)
    for action in range(NUM_ACTIONS):
        one_hot = np.eye(NUM_ACTIONS)[[action] * 4]
        x = np.concatenate([np.asarray(observation).reshape(4, -1), one_hot], axis=1)
        x = relu(dense(x, params["first"]))
        x = relu(dense(x, params["layers"]["hidden"][0]))
        expected = np.tanh(dense(x, params["layers"]["out"]))[:, 0]
        np.testing.assert_allclose(found[:, action], expected, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("separate", [False, True])
def test_one_actions_value_equals_that_among_all_actions(form, separate, observation):
    network, params = build(form, separate=separate)
    action = jnp.array([0, 4, 2, 2])
    every = every_action_value(network, params, observation, PLAYER)
    one = action_value(network, params, observation, PLAYER, action)
    assert every.shape == (4, NUM_ACTIONS)
    np.testing.assert_allclose(one, every[jnp.arange(4), action], atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_separate_players_have_a_network_each(form, observation):
    network, params = build(form, separate=True)
    first, second = (
        every_action_value(network, (own,), observation, PLAYER) for own in params
    )
    assert not np.allclose(first, second)
    both = every_action_value(network, params, observation, PLAYER)
    for row, player in enumerate(PLAYER):
        np.testing.assert_allclose(both[row], (first, second)[player][row], atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_shared_network_ignores_the_player_to_move(form, observation):
    network, params = build(form)
    chex.assert_trees_all_equal(
        every_action_value(network, params, observation, PLAYER),
        every_action_value(network, params, observation, 1 - PLAYER),
    )


@pytest.mark.parametrize("form", FORMS)
def test_initial_values_are_0(form, observation):
    config = QNetworkConfig(form=form)
    network, params = init_q_network(jax.random.key(1), SHAPE, NUM_ACTIONS, config)
    values = every_action_value(network, params, observation, PLAYER)
    np.testing.assert_array_equal(values, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "table"}, "network.form must be state or pair: 'table'"),
        ({"hidden": ()}, "network.hidden must be 1 to 64 numbers: 0"),
        ({"hidden": (8, 0)}, "network.hidden must be an int from 1 to 8192: 0"),
    ],
)
def test_invalid_network_settings_raise(settings, message):
    with pytest.raises(ValueError, match=message):
        QNetworkConfig(**settings)
