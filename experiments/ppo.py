"""Proximal policy optimization (Schulman et al. 2017) on `VectorEnv`, in one file.

python experiments/ppo.py       learns Connect Four against random moves in a minute
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
import tyro

from azjax import games

NUM_ENVS, NUM_MOVES = 256, 64  # moves of both players, in each game and iteration
EPOCHS, BATCH_SIZE, LEARNING_RATE, WIDTH = 2, 2048, 1e-3, 256
DISCOUNT, GAE_LAMBDA, CLIP, ENTROPY_WEIGHT = 0.99, 0.95, 0.2, 0.01


class Move(NamedTuple):
    """A move in each of B games; T moves have a leading axis."""

    observation: jax.Array
    mask: jax.Array
    action: jax.Array
    log_probability: jax.Array
    value: jax.Array
    reward: jax.Array  # of the learner
    is_learner: jax.Array
    terminated: jax.Array


def init_params(rng_key, sizes):
    """Returns the weights and biases of dense layers."""
    init = jax.nn.initializers.orthogonal(jnp.sqrt(2))
    keys = jax.random.split(rng_key, len(sizes) - 1)
    pairs = zip(keys, itertools.pairwise(sizes), strict=True)
    return [(init(key, shape), jnp.zeros(shape[1])) for key, shape in pairs]


def predict(params, observation, mask):
    """Returns the logits, `[B, A]`, and the values, `[B]`."""
    x = observation.reshape(len(observation), -1)
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    x = 0.1 * (x @ params[-1][0] + params[-1][1])
    return jnp.where(mask, x[:, :-1], -1e9), jnp.tanh(x[:, -1])


def play(env, params, carry, rng_key, *, best=False):
    """Makes a move in each game: the learner's, or a random one of its opponent."""
    env_state, step = carry
    seat = jnp.arange(env.num_envs) % 2  # of the learner
    mask, is_learner = step.legal_action_mask, step.current_player == seat
    logits, value = predict(params, step.observation, mask)
    own_key, other_key = jax.random.split(rng_key)
    own = logits.argmax(axis=-1) if best else jax.random.categorical(own_key, logits)
    action = jnp.where(is_learner, own, games.random_action(other_key, mask))
    log_probability = select(jax.nn.log_softmax(logits), action)
    env_state, after = env.step(env_state, action)
    before = (step.observation, mask, action, log_probability, value)
    outcome = (select(after.reward, seat), is_learner, after.terminated)
    return (env_state, after), Move(*before, *outcome)


def select(rows, index):
    """Returns `rows[b, index[b]]` for each b."""
    return jnp.take_along_axis(rows, index[:, None], axis=1)[:, 0]


def advantages(moves):
    """Returns the advantages, `[T, B]`; only those of the learner's moves count."""

    def step(later, move):
        value, advantage, reward = (jnp.where(move.terminated, 0, x) for x in later)
        reward += move.reward
        own = reward + DISCOUNT * (value + GAE_LAMBDA * advantage) - move.value
        now = (move.value, own, jnp.zeros_like(own))
        choose = functools.partial(jnp.where, move.is_learner)
        return tuple(map(choose, now, (value, advantage, reward))), own

    # A game that goes on is cut off at the value of its last position.
    zeros = jnp.zeros_like(moves.value[-1])
    return jax.lax.scan(step, (moves.value[-1], zeros, zeros), moves, reverse=True)[1]


def loss_of(params, moves, advantage):
    """Returns the loss of PPO over the learner's moves of a batch."""
    logits, value = predict(params, moves.observation, moves.mask)
    log_policy = jax.nn.log_softmax(logits)
    ratio = jnp.exp(select(log_policy, moves.action) - moves.log_probability)
    clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP)
    gain = jnp.minimum(ratio * advantage, clipped * advantage)
    entropy = -(jnp.exp(log_policy) * log_policy).sum(axis=-1)
    loss = (
        0.5 * (moves.value + advantage - value) ** 2 - gain - ENTROPY_WEIGHT * entropy
    )
    return jnp.average(loss, weights=moves.is_learner)


def score(env, params, rng_key):
    """Returns the learner's score in the first game of each environment, in [0, 1]."""
    keys = jax.random.split(rng_key, env.game.max_moves)
    make_move = functools.partial(play, env, params, best=True)
    moves = jax.lax.scan(make_move, env.reset(rng_key), keys)[1]
    is_first = jnp.cumsum(moves.terminated, axis=0) - moves.terminated == 0
    return (1 + (moves.reward * is_first).sum(axis=0)).mean() / 2


def train(game: str = "connect_four", iterations: int = 100, seed: int = 0) -> None:
    """Learns, and prints the learner's score against random moves."""
    env = games.VectorEnv(games.make(game), NUM_ENVS)
    init_key, reset_key, rng_key = jax.random.split(jax.random.key(seed), 3)
    carry = jax.jit(env.reset)(reset_key)
    inputs, outputs = carry[1].observation[0].size, env.game.num_actions + 1
    params = init_params(init_key, [inputs, WIDTH, WIDTH, outputs])
    optimizer = optax.adam(LEARNING_RATE)

    def update(carry, batch):
        params, state = carry
        gradient = jax.grad(loss_of)(params, *batch)
        updates, state = optimizer.update(gradient, state)
        return (optax.apply_updates(params, updates), state), None

    @jax.jit
    def iterate(params, state, carry, rng_key):
        play_key, *epoch_keys = jax.random.split(rng_key, 1 + EPOCHS)
        keys = jax.random.split(play_key, NUM_MOVES)
        carry, moves = jax.lax.scan(functools.partial(play, env, params), carry, keys)
        data = moves, advantages(moves)
        for epoch_key in epoch_keys:
            order = jax.random.permutation(epoch_key, NUM_MOVES * NUM_ENVS)
            index = jnp.unravel_index(order.reshape(-1, BATCH_SIZE), data[1].shape)
            batches = jax.tree.map(lambda x: x[index], data)  # noqa: B023, used at once
            (params, state), _ = jax.lax.scan(update, (params, state), batches)
        return params, state, carry

    state, measure = optimizer.init(params), jax.jit(functools.partial(score, env))
    for number in range(iterations + 1):
        if number % 10 == 0 or number == iterations:
            print(f"iteration {number}: {measure(params, rng_key):.1%}", flush=True)
        rng_key, iteration_key = jax.random.split(rng_key)
        params, state, carry = iterate(params, state, carry, iteration_key)


if __name__ == "__main__":
    tyro.cli(train)
