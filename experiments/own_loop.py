"""A custom training loop, built from the functions of `azjax.training`.

    python experiments/own_loop.py                  learns tic-tac-toe in a minute

Each iteration plays, stores, samples, updates and averages; every tenth iteration
prints the mistake rate of a search with the averaged network.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import optax

from azjax import arena, games, networks, players, training
from azjax.devices import jit_network
from azjax.search import GumbelConfig

NUM_GAMES, MOVES, NUM_CHUNKS, UPDATES = 256, 8, 16, 32
game = games.make("tic_tac_toe")
trunk = networks.DenseTrunkConfig(num_blocks=2, width=64, stem_channels=32, window=3)
config = networks.NetworkConfig(trunk)
network, variables = networks.init_network(
    jax.random.key(0), game.observation_shape, game.num_actions, config
)
search, optimizer = GumbelConfig(), optax.adamw(2e-3)
settings = training.SelfPlayConfig(num_games=NUM_GAMES, moves_per_chunk=MOVES)
play = training.make_self_play(game, network, search, settings)
store = jax.jit(training.insert, donate_argnums=0)
value_target = training.lambda_target(0.8, game.max_moves)
find = jax.jit(functools.partial(training.make_index, value_target=value_target))
sampler = training.uniform_sampler()
update = training.make_update(network, optimizer, training.head_losses, ema_decay=0.99)


@jit_network
def learn(learner, replay, index, rng_key):
    """Samples a batch and updates the network with it."""
    sample = sampler.choose((), index, rng_key, 256)
    batch = training.make_batch(game, replay, index, sample)
    return update(learner, batch, jnp.float32(0))[:2]


def mistakes(variables) -> float:
    """Returns the fraction of positions in which the search misses the best move."""
    player = players.AlphaZeroPlayer(game, search, 64, network, variables)
    positions = arena.shipped(game)
    assert positions is not None
    return arena.grade(player, positions, jax.random.key(0)).mean


def main(num_iterations: int) -> None:
    """Trains and prints the losses and the mistakes."""
    learner = training.init_learner(variables, optimizer)
    in_progress = training.start_games(game, NUM_GAMES, jax.random.key(1))
    replay = training.empty_replay(
        game,
        num_chunks=NUM_CHUNKS,
        moves_per_chunk=MOVES,
        num_games=NUM_GAMES,
        policy_entries=game.num_actions,
    )
    for iteration in range(1, num_iterations + 1):
        play_key, learn_key = jax.random.split(jax.random.key(1 + iteration))
        in_progress, trajectory, *_ = play(learner.averaged, 32, in_progress, play_key)
        replay = store(replay, trajectory, jnp.int32(iteration - 1))
        replay, index, _ = find(replay, iteration * MOVES, NUM_CHUNKS * MOVES)
        metrics = {}
        for key in jax.random.split(learn_key, UPDATES):
            learner, metrics = learn(learner, replay, index, key)
        if iteration % 10 == 0 or iteration == num_iterations:
            losses = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
            print(f"{iteration}: {losses}, mistakes {mistakes(learner.averaged):.2%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=100)
    main(parser.parse_args().iterations)
