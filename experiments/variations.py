"""Variations of AlphaZero, through the arguments of `azjax.train`.

    python experiments/variations.py pure_z
    python experiments/variations.py five_steps --game connect_four
    python experiments/variations.py prioritized --minutes 10
    python experiments/variations.py occupied --game connect_four

Each function below returns the arguments of one variation; docs/training.md lists the
other replaceable parts.
"""

import argparse

import jax
import jax.numpy as jnp
import optax

from azjax import games, networks, train, training


def pure_z(game: games.Game) -> dict:
    """Trains on the result of the game."""
    return {"value_target": training.lambda_target(1.0, game.max_moves)}


def five_steps(game: games.Game, num_steps: int = 5) -> dict:
    """Trains on the search's value `num_steps` moves later, or the result."""

    def compute(moves):
        target = training.soft_result(moves.value, moves.draw_probability)
        for _ in range(num_steps):
            # The value target of the next position, negated; the newest position keeps
            # its own.
            after = jnp.concatenate([jnp.flip(target[1:], axis=-1), target[-1:]])
            result = training.one_hot_result(moves.reward)
            target = jnp.where(moves.terminated[..., None], result, after)
        return target

    horizon = min(num_steps, game.max_moves)
    return {"value_target": training.ValueTarget(compute, horizon)}


def prioritized(game: games.Game, alpha: float = 0.6, beta: float = 0.4) -> dict:
    """Samples positions by their last loss, with importance weights.

    See Schaul et al. 2016, "Prioritized Experience Replay".
    """
    del game

    def prepare(priority, index):
        highest = jnp.maximum(priority.max(), 1.0)
        priority = jnp.where(index.is_new, highest, priority)
        return jnp.where(index.is_eligible, priority, 0.0)

    def choose(priority, index, rng_key, size):
        mass = jnp.cumsum(priority.ravel() ** alpha)
        uniform = jax.random.uniform(rng_key, (size,), maxval=mass[-1])
        number = jnp.searchsorted(mass, uniform)
        row, slot = jnp.divmod(number, priority.shape[1])
        probability = priority[row, slot] ** alpha / mass[-1]
        weight = (index.size * probability) ** -beta
        return training.Sample(row, slot, weight / weight.mean())

    def update(priority, sample, loss):
        return priority.at[sample.row, sample.slot].set(loss + 1e-3)

    return {"sampler": training.Sampler(jnp.zeros, prepare, choose, update)}


def occupied(game: games.Game) -> dict:
    """Predicts with a third head which cells are occupied at the end of the game."""
    height, width, _ = game.observation_shape

    def make(features_shape, rngs):
        return networks.PolicyHead(
            features_shape, height * width, dtype=jnp.float32, rngs=rngs
        )

    def target(state, final_state):
        del state
        return (game.board(final_state) >= 0).astype(jnp.float32)

    def loss(logits, targets):
        targets = targets.reshape(logits.shape)
        return optax.sigmoid_binary_cross_entropy(logits, targets).mean(axis=-1)

    def transform(symmetry, targets):
        return symmetry.observation(targets[..., None])[..., 0]

    head = networks.AuxiliaryHead("occupied", make, target, loss, transform)
    return {"parts": networks.Parts(auxiliary=(head,))}


VARIATIONS = {
    "pure_z": pure_z,
    "five_steps": five_steps,
    "prioritized": prioritized,
    "occupied": occupied,
}


def main() -> None:
    """Trains one variation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("variation", choices=VARIATIONS)
    parser.add_argument("--game", default="tic_tac_toe")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--run-dir")
    args = parser.parse_args()
    run_dir = args.run_dir or f"runs/{args.variation}"
    config = training.preset("auto", args.game, minutes=args.minutes, run_dir=run_dir)
    train(config, **VARIATIONS[args.variation](games.make(args.game)))


if __name__ == "__main__":
    main()
