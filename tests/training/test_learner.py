import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from azjax import games
from azjax.networks import NetworkConfig, Variables
from azjax.players import first_network
from azjax.training import LearnerConfig, SelfPlayConfig
from azjax.training.learner import (
    init_learner,
    learning_rate,
    make_optimizer,
    make_update,
)
from azjax.training.replay import Index, empty_replay
from azjax.training.self_play import start_games

GAME = games.make("tic_tac_toe")
CONFIG = LearnerConfig(batch_size=32, learning_rate=1e-2, averaging=0.9)
NETWORK, FIRST = first_network(
    0, GAME, NetworkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
)


@pytest.fixture(scope="module")
def data():
    """A store of 16 positions, with results and policies of no meaning."""
    replay = empty_replay(GAME, num_chunks=1, moves_per_chunk=2, num_games=8)
    start = start_games(GAME, SelfPlayConfig(games=16), jax.random.key(0))
    state = jax.tree.map(lambda leaf: leaf.reshape(2, 8, *leaf.shape[1:]), start.state)
    legal = jax.vmap(jax.vmap(GAME.legal_action_mask))(state)
    policy = jax.nn.one_hot(legal.argmax(-1), 9, dtype=jnp.float16)
    chunk = replay.chunk._replace(state=state, policy=policy)
    index = Index(jnp.arange(16), jnp.int32(16), jax.nn.one_hot(jnp.arange(16) % 3, 3))
    return replay.replace(chunk=chunk), index


@pytest.fixture(scope="module")
def update():
    return make_update(GAME, NETWORK, make_optimizer(CONFIG), CONFIG)


def fresh(optimizer=None):
    variables = jax.tree.map(jnp.copy, FIRST)
    return init_learner(variables, optimizer or make_optimizer(CONFIG))


def test_the_losses_go_down_on_the_same_positions(update, data):
    learner, seen = fresh(), []
    for step in range(60):
        learner, metrics = update(
            learner, *data, jax.random.key(step), jnp.float32(0.1)
        )
        seen.append(jax.device_get(metrics))
    assert seen[-1].policy_loss < 0.8 * seen[0].policy_loss
    assert seen[-1].value_loss < 0.9 * seen[0].value_loss
    assert all(math.isfinite(number) for metrics in seen for number in metrics)
    assert learner.updates == 60


def test_the_same_key_makes_the_same_update(update, data):
    results = [
        update(fresh(), *data, jax.random.key(0), jnp.float32(0.5)) for _ in range(2)
    ]
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_averaged_weights_follow_the_learnt_ones(update, data):
    learner = fresh()
    average = jax.tree.map(np.asarray, FIRST)
    for step in range(3):
        learner, _ = update(learner, *data, jax.random.key(step), jnp.float32(0.1))
        # At first the average is quick: it forgets the random start.
        decay = min(CONFIG.averaging, (step + 1) / (step + 11))
        average = jax.tree.map(
            lambda old, new, decay=decay: decay * old + (1 - decay) * np.asarray(new),
            average,
            learner.variables,
        )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        average,
        learner.averaged,
    )


def test_the_learning_rate_rises_linearly_and_falls_as_a_cosine():
    config = LearnerConfig(learning_rate=0.5, warm_up=0.2, final_rate=0.1)
    shares = [0.0, 0.1, 0.2, 0.6, 1.0]
    rates = [float(learning_rate(config, share)) for share in shares]
    middle = 0.5 * (0.1 + 0.9 * 0.5)
    np.testing.assert_allclose(rates, [0.005, 0.25, 0.5, middle, 0.05], rtol=1e-5)
    assert float(learning_rate(config, 2.0)) == pytest.approx(0.05)


@pytest.mark.parametrize("warm_up", [0.0, 1.0])
def test_the_rise_may_take_none_or_all_of_the_run(warm_up):
    config = LearnerConfig(learning_rate=1.0, warm_up=warm_up)
    rates = [float(learning_rate(config, share)) for share in np.linspace(0, 1, 11)]
    assert max(rates) == pytest.approx(1)
    assert np.isfinite(rates).all()
    assert (np.diff(rates) >= 0).all() if warm_up else (np.diff(rates) <= 0).all()


def test_weights_decay_and_biases_do_not():
    config = LearnerConfig(learning_rate=0.5, warm_up=0.0, weight_decay=0.1)
    optimizer = make_optimizer(config)
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    zeros = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(
        zeros, optimizer.init(params), params, progress=jnp.float32(0)
    )
    # With no gradient AdamW takes rate * decay of a weight.
    np.testing.assert_allclose(updates["kernel"], -0.05, rtol=1e-6)
    np.testing.assert_array_equal(updates["bias"], 0)


def test_long_gradients_are_cut():
    config = LearnerConfig(max_gradient_norm=1.0, weight_decay=0.0)
    optimizer = make_optimizer(config)
    params = {"kernel": jnp.zeros((2, 2))}
    moments = [
        optimizer.update(
            {"kernel": jnp.full((2, 2), size)},
            optimizer.init(params),
            params,
            progress=jnp.float32(0),
        )[1]
        for size in (1.0, 100.0)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), *moments)


def test_a_users_own_optimizer_takes_adamws_place(data):
    optimizer = optax.sgd(0.0)  # it has no use for the run's progress
    update = make_update(GAME, NETWORK, optimizer, CONFIG)
    learner, metrics = update(
        fresh(optimizer), *data, jax.random.key(0), jnp.float32(0)
    )
    jax.tree.map(np.testing.assert_array_equal, learner.variables.params, FIRST.params)
    assert metrics.gradient_norm > 0
    assert isinstance(learner.variables, Variables)
