import functools

import chex
import jax
import numpy as np
import pytest
from compiled_games import compiled
from untrained import in_one_program

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
from azjax.training.q_play import Transition, make_self_play_move, start_q_games
from azjax.training.q_targets import q_loss, q_targets

GAME = games.make("tic_tac_toe")
PACE = Pace(epsilon=np.float32(1.0), learning_rate=np.float32(3e-3))
NUM_GAMES, NUM_MOVES = 8, 8
init_learner = jax.jit(init_q_learner)


@functools.cache
def build():
    return in_one_program(
        init_q_network,
        jax.random.key(0),
        GAME.observation_shape,
        GAME.num_actions,
        QNetworkConfig(hidden=(32,)),
    )


def fitted(network, learner, batch, **settings):
    config = FitConfig(**{"batch_size": 16, "low_loss": 0.0} | settings)
    fit = jax.jit(make_fit(GAME, network, config))
    return fit(learner, batch, PACE, jax.random.key(2))


def test_fitting_lowers_the_loss_against_fixed_targets():
    network, params = build()
    play_move = make_self_play_move(GAME, network)

    @jax.jit
    def collect(params):
        def play(games, rng_key):
            return play_move(params, games, PACE.epsilon, rng_key)

        keys = jax.random.split(jax.random.key(1), NUM_MOVES)
        moves = jax.lax.scan(play, start_q_games(GAME, NUM_GAMES), keys)[1]
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), moves)

    @jax.jit
    def loss(fitted_params, batch):
        targets = q_targets(GAME, network, params, batch)
        return q_loss(fitted_params, GAME, network, batch, targets)

    batch = collect(params)  # 64 moves, 4 minibatches
    learner, _ = fitted(network, init_learner(params), batch, sweeps=1, max_epochs=60)
    assert learner.updates == 60 * 4
    before = loss(params, batch)
    assert before > 0.05  # some of these games have a winner
    assert loss(learner.params, batch) < before / 4


@pytest.mark.slow
def test_a_second_sweep_uses_targets_of_the_first():
    # A move before a win has the value -1 only after the win has the value 1.
    network, params = build()
    state, moves = jax.device_get(GAME.init()), []
    for action in (0, 3, 1, 4, 2):  # the top row
        after = jax.device_get(compiled(GAME).step(state, np.int32(action)))
        reward = float(after.terminated)
        numbers = np.int32(action), np.float32(reward), np.float32(reward - 1)
        moves.append(Transition(state, *numbers, after, np.bool(True)))
        state = after
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *moves)

    def values(sweeps):
        settings = {"batch_size": 5, "sweeps": sweeps, "max_epochs": 300}
        learner, _ = fitted(network, init_learner(params), batch, **settings)
        return np.asarray(value_of_moves(learner.params))

    @jax.jit
    def value_of_moves(params):
        observation = jax.vmap(GAME.observe)(batch.state)
        players = batch.state.current_player
        return action_value(network, params, observation, players, batch.action)

    once, twice = values(1), values(3)
    np.testing.assert_allclose(once, [0, 0, 0, 0, 1], atol=0.1)
    assert twice[4] > 0.9
    assert twice[3] < -0.8


def test_offline_learning_updates_in_the_fit_until_the_loss_is_low():
    network, params = build()
    play_move = make_self_play_move(GAME, network)
    config = FitConfig(sweeps=3, batch_size=16, max_epochs=5, low_loss=10.0)
    iterate = jax.jit(
        make_offline(GAME, network, play_move, config, num_moves=NUM_MOVES)
    )
    games = start_q_games(GAME, NUM_GAMES)
    learner, _, metrics = iterate(init_learner(params), games, PACE, jax.random.key(3))
    assert learner.updates == 3 * 64 // 16  # each sweep ends after the first pass
    assert metrics.games > 0
    assert np.isfinite(metrics.loss)


def test_online_updates_are_steps_of_adam_on_the_moves_just_made():
    network, params = build()
    play_move = make_self_play_move(GAME, network)
    games = start_q_games(GAME, NUM_GAMES)
    iterate = jax.jit(make_online(GAME, network, play_move, num_moves=NUM_MOVES))
    learner, _, metrics = iterate(init_learner(params), games, PACE, jax.random.key(4))

    @jax.jit
    def play_and_differentiate(params, games, move_key):
        games, transition = play_move(params, games, PACE.epsilon, move_key)
        targets = q_targets(GAME, network, params, transition)
        found = jax.value_and_grad(q_loss)(params, GAME, network, transition, targets)
        return games, (transition.discount == 0).sum(), *found

    leaves, structure = jax.tree.flatten(jax.device_get(params))
    mean, square = [np.zeros_like(leaf) for leaf in leaves], [0.0] * len(leaves)
    losses, finished = [], 0
    for step, key in enumerate(jax.random.split(jax.random.key(4), NUM_MOVES), 1):
        games, ended, loss, gradient = play_and_differentiate(
            jax.tree.unflatten(structure, leaves), games, key
        )
        losses.append(loss)
        finished += int(ended)
        gradient = jax.tree.leaves(jax.device_get(gradient))
        norm = np.sqrt(sum((leaf**2).sum() for leaf in gradient))
        gradient = [leaf / max(norm, 1) for leaf in gradient]
        mean = [0.9 * m + 0.1 * g for m, g in zip(mean, gradient, strict=True)]
        square = [
            0.999 * s + 0.001 * g**2 for s, g in zip(square, gradient, strict=True)
        ]
        leaves = [
            leaf
            - PACE.learning_rate
            * (m / (1 - 0.9**step))
            / (np.sqrt(s / (1 - 0.999**step)) + 1e-8)
            for leaf, m, s in zip(leaves, mean, square, strict=True)
        ]
    found = jax.tree.leaves(learner.params)
    chex.assert_trees_all_close(found, leaves, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(metrics.loss, np.mean(losses), rtol=1e-4)
    assert finished > 0
    assert (metrics.games, learner.updates) == (finished, NUM_MOVES)
