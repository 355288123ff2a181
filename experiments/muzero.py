"""MuZero (Schrittwieser et al. 2020) with the search of `azjax.search`, in one file.

python experiments/muzero.py       learns tic-tac-toe in two minutes, without its rules

The search looks ahead in a learned model. The rules play the games and mark the legal
moves of the positions that are searched; the search never calls them.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
import tyro
from flax import nnx, struct

from azjax import arena, games, players, search

NUM_GAMES, SIMULATIONS = 256, 16  # games of an iteration, simulations of a move
UNROLL, WIDTH = 5, 128  # moves that the model is unrolled for in training
REPLAY, UPDATES, BATCH_SIZE, LEARNING_RATE = 20, 32, 256, 2e-3  # REPLAY: iterations


class Model(nnx.Module):
    """Representation, dynamics and prediction; hidden states are `[B, WIDTH]`."""

    def __init__(self, game: games.Game, rngs: nnx.Rngs):
        def layers(inputs, outputs):
            first, last = (inputs, WIDTH), (WIDTH, outputs)
            return nnx.Sequential(
                nnx.Linear(*first, rngs=rngs), nnx.relu, nnx.Linear(*last, rngs=rngs)
            )

        self.num_actions = game.num_actions
        self.representation = layers(math.prod(game.observation_shape), WIDTH)
        self.dynamics = layers(WIDTH + self.num_actions, WIDTH)
        self.reward = layers(WIDTH, 1)
        self.prediction = layers(WIDTH, self.num_actions + 1)
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

    def represent(self, observation):
        """Returns the hidden states of observed positions."""
        return self.norm(self.representation(observation.reshape(len(observation), -1)))

    def advance(self, hidden, action):
        """Returns the hidden states after an action, and its rewards, `[B]`."""
        one_hot = jax.nn.one_hot(action, self.num_actions)
        change = self.dynamics(jnp.concatenate([hidden, one_hot], axis=-1))
        hidden = self.norm(hidden + change)
        return hidden, jnp.tanh(self.reward(hidden)[:, 0])

    def predict(self, hidden):
        """Returns the logits, `[B, A]`, and the values, `[B]`."""
        outputs = self.prediction(hidden)
        return outputs[:, :-1], jnp.tanh(outputs[:, -1])


@struct.dataclass
class MuZeroPlayer:
    """Searches in the model; with one simulation it plays the most probable move."""

    game: games.Game = struct.field(pytree_node=False)
    network: Any = struct.field(pytree_node=False)
    simulations: int = struct.field(pytree_node=False)
    params: Any

    def search(self, rng_key, states, gumbel_scale):
        """Searches B positions."""

        def recurrent_fn(params, rng_key, action, hidden):
            model = nnx.merge(self.network, params)
            hidden, reward = model.advance(hidden, action)
            logits, value = model.predict(hidden)
            # A value is for the player to move, who changes with each move.
            fields = {"reward": reward, "discount": jnp.full_like(reward, -1.0)}
            fields |= {"prior_logits": logits, "value": value}
            return search.RecurrentFnOutput(**fields), hidden

        model = nnx.merge(self.network, self.params)
        hidden = model.represent(jax.vmap(self.game.observe)(states))
        logits, value = model.predict(hidden)
        fields = {"prior_logits": logits, "value": value, "embedding": hidden}
        return search.gumbel_muzero_policy(
            self.params,
            rng_key,
            search.RootFnOutput(**fields),
            recurrent_fn,
            self.simulations,
            invalid_actions=~jax.vmap(self.game.legal_action_mask)(states),
            gumbel_scale=gumbel_scale,
        )

    def choose(self, rng_key, states):
        """Chooses a move in each of B positions, as `arena.grade` asks for."""
        output = self.search(rng_key, states, gumbel_scale=0.0)
        value = search.improved_value(output)
        return players.Choice(output.action, output.action_weights, value)


class Move(NamedTuple):
    """A move in each of B games; T moves have a leading axis."""

    observation: jax.Array
    action: jax.Array
    policy: jax.Array  # of the search; zeros after the end of the game
    reward: jax.Array  # of the player who moves
    value: jax.Array  # the result for that player; 0 after the end
    is_random: jax.Array  # made by chance: the result says little of the position


def play_games(player, rng_key):
    """Plays games to their ends, which begin with up to all but three random moves."""
    game = player.game
    opening_key, move_key = jax.random.split(rng_key)
    num_random = jax.random.randint(opening_key, (NUM_GAMES,), 0, game.max_moves - 2)

    def move(states, inputs):
        number, rng_key = inputs
        search_key, random_key = jax.random.split(rng_key)
        output = player.search(search_key, states, gumbel_scale=1.0)
        is_over = states.terminated
        is_random = (number < num_random) & ~is_over
        legal = jax.vmap(game.legal_action_mask)(states)
        random = games.random_action(random_key, legal | is_over[:, None])
        action = jnp.where(is_random | is_over, random, output.action)
        after = jax.vmap(game.step)(states, action)
        mover = states.current_player[:, None]
        reward = jnp.take_along_axis(jax.vmap(game.rewards)(after), mover, axis=1)[:, 0]
        reward = jnp.where(is_over, 0.0, reward)
        policy = jnp.where(is_over[:, None], 0.0, output.action_weights)
        observation = jax.vmap(game.observe)(states)
        return after, Move(observation, action, policy, reward, reward, is_random)

    def result(later, reward):
        return (reward - later,) * 2

    start = jax.vmap(lambda _: game.init())(jnp.arange(NUM_GAMES))
    inputs = jnp.arange(game.max_moves), jax.random.split(move_key, game.max_moves)
    moves = jax.lax.scan(move, start, inputs)[1]
    value = jax.lax.scan(result, jnp.zeros(NUM_GAMES), moves.reward, reverse=True)[1]

    def pad(leaf):  # the model also learns that nothing happens after the end
        return jnp.pad(leaf, [(0, UNROLL), *[(0, 0)] * (leaf.ndim - 1)])

    return jax.tree.map(pad, moves._replace(value=value))


def loss_of(params, network, moves):
    """Returns the loss of the model, unrolled along moves `[UNROLL + 1, B]`."""
    model = nnx.merge(network, params)

    def unroll(hidden, move):
        logits, value = model.predict(hidden)
        loss = optax.softmax_cross_entropy(logits, move.policy)
        loss += jnp.where(move.is_random, 0.0, (value - move.value) ** 2)
        hidden, reward = model.advance(hidden, move.action)
        # Half the gradient passes, so that it does not grow along the moves.
        hidden = (hidden + jax.lax.stop_gradient(hidden)) / 2
        return hidden, loss + (reward - move.reward) ** 2

    return jax.lax.scan(unroll, model.represent(moves.observation[0]), moves)[1].mean()


def sample(replay, num_iterations, rng_key):
    """Returns moves `[UNROLL + 1, BATCH_SIZE]` from random positions on."""
    num_starts = replay.action.shape[1] - UNROLL
    limits = jnp.array([[num_iterations], [num_starts], [NUM_GAMES]])
    shape = (3, BATCH_SIZE)
    iteration, start, game = jax.random.randint(rng_key, shape, 0, limits)
    number = start + jnp.arange(UNROLL + 1)[:, None]
    return jax.tree.map(lambda leaf: leaf[iteration, number, game], replay)


def train(game: str = "tic_tac_toe", iterations: int = 100, seed: int = 0) -> None:
    """Learns, and prints the mistakes in solved positions, with search and without."""
    rules = games.make(game)
    positions = arena.shipped(rules)
    if positions is None:
        raise SystemExit(f"azjax has no solved positions of {game}")
    init_key, rng_key = jax.random.split(jax.random.key(seed))
    network, params = nnx.split(Model(rules, nnx.Rngs(init_key)))
    player = MuZeroPlayer(rules, network, SIMULATIONS, params)
    optimizer = optax.adamw(LEARNING_RATE)

    def update(carry, moves):
        params, state = carry
        gradient = jax.grad(loss_of)(params, network, moves)
        updates, state = optimizer.update(gradient, state, params)
        return (optax.apply_updates(params, updates), state), None

    @jax.jit
    def iterate(player, state, replay, number, rng_key):
        play_key, sample_key = jax.random.split(rng_key)
        moves = play_games(player, play_key)
        replay = jax.tree.map(
            lambda old, new: old.at[number % REPLAY].set(new), replay, moves
        )
        choose = functools.partial(sample, replay, jnp.minimum(number + 1, REPLAY))
        batches = jax.vmap(choose)(jax.random.split(sample_key, UPDATES))
        (params, state), _ = jax.lax.scan(update, (player.params, state), batches)
        return dataclasses.replace(player, params=params), state, replay

    def mistakes(simulations):
        graded = dataclasses.replace(player, simulations=simulations)
        return arena.grade(graded, positions, jax.random.key(0)).mean

    state = optimizer.init(params)
    moves = jax.eval_shape(play_games, player, rng_key)
    replay = jax.tree.map(lambda x: jnp.zeros((REPLAY, *x.shape), x.dtype), moves)
    for number in range(iterations + 1):
        if number % 10 == 0 or number == iterations:
            print(
                f"iteration {number}: mistakes {mistakes(SIMULATIONS):.1%}, "
                f"without search {mistakes(1):.1%}",
                flush=True,
            )
        rng_key, iteration_key = jax.random.split(rng_key)
        player, state, replay = iterate(player, state, replay, number, iteration_key)


if __name__ == "__main__":
    tyro.cli(train)
