import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.networks import QNetworkConfig, action_value, init_q_network
from azjax.training.q_config import FitConfig
from azjax.training.q_learner import (
    Pace,
    init_q_learner,
    make_fit,
    make_offline,
    make_online,
)
from azjax.training.q_play import make_self_play_move, start_q_games
from azjax.training.q_targets import q_loss, q_targets

GAME = games.make("tic_tac_toe")
PACE = Pace(epsilon=jnp.float32(1.0), learning_rate=jnp.float32(3e-3))
NUM_GAMES, NUM_MOVES = 8, 8


def build(form):
    config = QNetworkConfig(form=form, hidden=(32,))
    return init_q_network(
        jax.random.key(0), GAME.observation_shape, GAME.num_actions, config
    )


def collect(network, params):
    play_move = make_self_play_move(GAME, network)

    def play(games, rng_key):
        return play_move(params, games, PACE.epsilon, rng_key)

    @jax.jit
    def play_all():
        keys = jax.random.split(jax.random.key(1), NUM_MOVES)
        return jax.lax.scan(play, start_q_games(GAME, NUM_GAMES), keys)[1]

    batch = play_all()
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)


def fitted(network, learner, batch, **settings):
    config = FitConfig(**{"batch_size": 16, "low_loss": 0.0} | settings)
    fit = jax.jit(make_fit(GAME, network, config))
    return fit(learner, batch, PACE, jax.random.key(2))


@pytest.mark.parametrize("form", ["state", "pair"])
def test_fitting_lowers_the_loss_against_fixed_targets(form):
    network, params = build(form)
    batch = collect(network, params)

    @jax.jit
    def loss(fitted_params):
        targets = q_targets(GAME, network, params, batch)
        return q_loss(fitted_params, GAME, network, batch, targets)

    before = loss(params)
    learner, _ = fitted(network, init_q_learner(params), batch, sweeps=1, max_epochs=60)
    after = loss(learner.params)
    assert before > 0.05  # some of these games have a winner
    assert after < before / 4


def test_fitting_ends_when_the_loss_is_low_or_after_the_last_pass():
    network, params = build("state")
    batch = collect(network, params)  # 64 moves, 4 minibatches
    for low_loss, passes in ((0.0, 5), (10.0, 1)):
        learner, _ = fitted(
            network,
            init_q_learner(params),
            batch,
            sweeps=3,
            max_epochs=5,
            low_loss=low_loss,
        )
        assert learner.updates == 3 * passes * 4


@pytest.mark.slow
def test_a_second_sweep_uses_targets_of_the_first():
    # A move before a win has the value -1 only after the win has the value 1.
    network, params = build("state")
    state, moves = GAME.init(), []
    play_move = make_self_play_move(GAME, network)
    for action in (0, 3, 1, 4, 2):  # the top row
        games = start_q_games(GAME, 1)
        games = games.replace(state=jax.tree.map(lambda leaf: leaf[None], state))
        moves.append(play_move(params, games, PACE.epsilon, jax.random.key(0))[1])
        after = GAME.step(state, jnp.int32(action))
        moves[-1] = moves[-1]._replace(
            action=jnp.array([action], jnp.int32),
            next_state=jax.tree.map(lambda leaf: leaf[None], after),
            reward=jnp.array([1.0 if after.terminated else 0.0]),
            discount=jnp.array([0.0 if after.terminated else -1.0]),
        )
        state = after
    batch = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *moves)

    def values(sweeps):
        learner, _ = fitted(
            network,
            init_q_learner(params),
            batch,
            batch_size=5,
            sweeps=sweeps,
            max_epochs=300,
        )
        observation = jax.vmap(GAME.observe)(batch.state)
        players = batch.state.current_player
        return action_value(network, learner.params, observation, players, batch.action)

    once, twice = values(1), values(3)
    np.testing.assert_allclose(once, [0, 0, 0, 0, 1], atol=0.1)
    assert twice[4] > 0.9
    assert twice[3] < -0.8


def test_online_learning_updates_at_every_move_and_offline_in_the_fit():
    network, params = build("state")
    play_move = make_self_play_move(GAME, network)
    online = make_online(GAME, network, play_move, num_moves=NUM_MOVES)
    config = FitConfig(sweeps=2, batch_size=32, max_epochs=1)
    offline = make_offline(GAME, network, play_move, config, num_moves=NUM_MOVES)
    for iterate, updates in ((online, NUM_MOVES), (offline, 2 * 64 // 32)):
        learner, _, metrics = jax.jit(iterate)(
            init_q_learner(params),
            start_q_games(GAME, NUM_GAMES),
            PACE,
            jax.random.key(3),
        )
        assert learner.updates == updates
        assert metrics.games > 0
        assert np.isfinite(metrics.loss)


def test_one_online_update_is_a_step_of_adam_on_the_moves_just_made():
    network, params = build("state")
    play_move = make_self_play_move(GAME, network)
    games = start_q_games(GAME, NUM_GAMES)
    iterate = jax.jit(make_online(GAME, network, play_move, num_moves=1))
    learner, _, metrics = iterate(
        init_q_learner(params), games, PACE, jax.random.key(4)
    )
    (move_key,) = jax.random.split(jax.random.key(4), 1)

    @jax.jit
    def loss_and_gradients(params):
        _, transition = play_move(params, games, PACE.epsilon, move_key)
        targets = q_targets(GAME, network, params, transition)
        return jax.value_and_grad(q_loss)(params, GAME, network, transition, targets)

    loss, gradients = loss_and_gradients(params)
    np.testing.assert_allclose(metrics.loss, loss, rtol=1e-6)
    # Adam's first step has the gradient's sign and the learning rate's length.
    expected = jax.tree.map(
        lambda param, gradient: (
            param - PACE.learning_rate * gradient / (jnp.abs(gradient) + 1e-8)
        ),
        params,
        gradients,
    )
    chex.assert_trees_all_close(learner.params, expected, atol=1e-5)
