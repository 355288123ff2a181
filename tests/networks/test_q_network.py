import functools
from typing import Any, NamedTuple

import jax
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


chance = np.random.default_rng(3)
OBSERVATION = (chance.uniform(size=(4, *SHAPE)) < 0.5).astype(np.float32)
PLAYER = np.array([0, 1, 1, 0], np.int8)
ACTION = np.array([0, 4, 2, 2])


class Values(NamedTuple):
    """The outputs of a network whose last layers are not 0, as they are initially.

    params: NumPy arrays.
    every: all values.
    initial: before the last layers were changed.
    one: values of `ACTION`.
    swapped: all values with the other player to move.
    own: all values by each player's parameters alone.
    """

    params: Any
    every: Any
    initial: Any
    one: Any
    swapped: Any
    own: Any


@functools.cache
def values_of(form, separate=False):
    config = QNetworkConfig(form=form, hidden=(7, 6), separate=separate)
    network, initial = init_q_network(jax.random.key(1), SHAPE, NUM_ACTIONS, config)
    initial, rng = jax.device_get(initial), np.random.default_rng(2)
    noisy = jax.tree.map(
        lambda leaf: np.float32(leaf + 0.3 * rng.normal(size=leaf.shape)), initial
    )

    @jax.jit
    def compute(params, initial):
        every = functools.partial(every_action_value, network)
        return Values(
            params,
            every(params, OBSERVATION, PLAYER),
            every(initial, OBSERVATION, PLAYER),
            action_value(network, params, OBSERVATION, PLAYER, ACTION),
            every(params, OBSERVATION, 1 - PLAYER),
            [every((own,), OBSERVATION, PLAYER) for own in params],
        )

    return jax.device_get(compute(noisy, initial))


def dense(x, layer):
    return x @ layer["kernel"] + layer["bias"]


def relu(x):
    return np.maximum(x, 0)


def test_state_input_is_a_dense_network_on_the_position():
    found = values_of("state")
    layers = found.params[0]["layers"]
    x = relu(dense(OBSERVATION.reshape(4, -1), layers["hidden"][0]))
    x = relu(dense(x, layers["hidden"][1]))
    expected = np.tanh(dense(x, layers["out"]))
    np.testing.assert_allclose(found.every, expected, rtol=1e-5, atol=1e-5)


def test_pair_input_is_a_dense_network_on_position_and_action():
    found = values_of("pair")
    (params,) = found.params
    for action in range(NUM_ACTIONS):
        one_hot = np.eye(NUM_ACTIONS)[[action] * 4]
        x = np.concatenate([OBSERVATION.reshape(4, -1), one_hot], axis=1)
        x = relu(dense(x, params["first"]))
        x = relu(dense(x, params["layers"]["hidden"][0]))
        expected = np.tanh(dense(x, params["layers"]["out"]))[:, 0]
        np.testing.assert_allclose(
            found.every[:, action], expected, rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("separate", [False, True])
def test_values_are_0_initially_and_one_actions_equals_that_among_all(form, separate):
    found = values_of(form, separate)
    np.testing.assert_array_equal(found.initial, np.zeros((4, NUM_ACTIONS)))
    assert found.every.all()
    expected = found.every[np.arange(4), ACTION]
    np.testing.assert_allclose(found.one, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_separate_players_have_a_network_each(form):
    found = values_of(form, separate=True)
    assert not np.allclose(*found.own)
    for row, player in enumerate(PLAYER):
        expected = found.own[player][row]
        np.testing.assert_allclose(found.every[row], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_shared_network_ignores_the_player_to_move(form):
    found = values_of(form)
    np.testing.assert_array_equal(found.every, found.swapped)


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
