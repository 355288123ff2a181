"""Variations of AlphaZero, through the arguments of `azjax.train`.

    python experiments/variations.py pure_z tic_tac_toe
    python experiments/variations.py prioritized connect_four --minutes 10

The options are those of `azjax train`; the run directory is `runs/VARIATION_GAME`
unless `--run-dir` is given. Continue a run with the variation that it began with: a
run records which arguments were given, not what they do.
Each function below returns the arguments of one variation; docs/training.md lists the
other replaceable parts. `experiments/ablate.py` compares variations with several seeds.
"""

import sys

import jax
import jax.numpy as jnp
import optax

from azjax import cli, games, networks, train, training
from azjax.commands.train import parse_train_config, show_run
from azjax.devices import use_all_cores
from azjax.training.learner import learning_rate
from azjax.training.run.signals import exit_on_second_signal

NUM_EARLY = 12  # stones


def pure_z(game: games.Game) -> dict:
    """Trains on the result of the game."""
    return {"value_target": training.lambda_target(1.0, game.max_moves)}


def soft_z(game: games.Game) -> dict:
    """Trains on the mean of the game's result and the search's value.

    The soft-Z target of Willemsen et al. 2021, "Value targets in off-policy AlphaZero:
    a new greedy backup", with bad moves left out as in `lambda_returns`.
    """

    def compute(moves):
        result = training.lambda_returns(moves, td_lambda=1.0)
        value = training.soft_result(moves.value, moves.draw_probability)
        return (result + value) / 2

    return {"value_target": training.ValueTarget(compute, game.max_moves)}


def five_steps(game: games.Game, num_steps: int = 5) -> dict:
    """Trains on the search's value `num_steps` moves later, or the result."""

    def compute(moves):
        target = training.soft_result(moves.value, moves.draw_probability)
        player = moves.state.current_player
        is_same = (player[1:] == player[:-1])[..., None]
        for _ in range(num_steps):
            # The value target of the next position, for the player to move here; the
            # newest position keeps its own.
            after = jnp.where(is_same, target[1:], jnp.flip(target[1:], axis=-1))
            after = jnp.concatenate([after, target[-1:]])
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
    return {"modules": networks.CustomModules(auxiliary=(head,))}


def early(game: games.Game) -> dict:
    """Gives positions with fewer than `NUM_EARLY` stones twice the weight.

    For games whose first two planes are the stones. Networks learn frequent positions
    first (Neumann and Gros 2024, "AlphaZero neural scaling and Zipf's law").
    """
    del game

    def loss(prediction, batch):
        stones = batch.observation[..., :2].sum(axis=(1, 2, 3))
        weight = jnp.where(stones < NUM_EARLY, 2.0, 1.0)
        weight /= weight.mean()
        return {
            name: head._replace(loss=weight * head.loss)
            for name, head in training.head_losses(prediction, batch).items()
        }

    return {"loss": loss}


def muon(game: games.Game) -> dict:
    """Trains the kernels of dense layers by Muon, the other parameters by Adam.

    Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks", with
    steps of the size of Adam's.
    """
    del game
    config = training.LearnerConfig()

    def scale(updates, state, params=None, **extra_args):
        del params
        rate = learning_rate(config, extra_args["progress"])
        return jax.tree.map(lambda update: rate * update, updates), state

    optimizer = optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm),
        optax.contrib.muon(
            1.0, consistent_rms=0.2, adam_b2=0.99, weight_decay=config.weight_decay
        ),
        optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), scale),
    )
    return {"optimizer": optimizer}


VARIATIONS = {
    each.__name__: each
    for each in (pure_z, soft_z, five_steps, prioritized, early, occupied, muon)
}


def main(args: list[str]) -> None:
    """Trains one variation.

    Raises:
        ValueError: an argument is not allowed.
    """
    prog, usage = "variations.py", "usage: variations.py VARIATION GAME [OPTIONS]"
    if args in (["-h"], ["--help"]):
        print(__doc__)
        for name, variation in VARIATIONS.items():
            print(f"{name:12} {(variation.__doc__ or '').splitlines()[0]}")
        return
    name, *rest = args or [""]
    if name not in VARIATIONS:
        raise ValueError(f"{usage}; VARIATION is {', '.join(VARIATIONS)}: {name!r}")
    if not rest or rest[0].startswith("-"):
        raise ValueError(f"{usage}, with the options of azjax train; GAME is missing")
    game, *options = rest
    given = [option.partition("=")[0].replace("_", "-") for option in options]
    if "--run-dir" not in given:
        of_game = training.preset("auto", game).directory.name
        options += ["--run-dir", f"runs/{name}_{of_game}"]
    config = parse_train_config(game, options, prog=f"{prog} {name} {game}")
    arguments = VARIATIONS[name](games.make(game))
    with exit_on_second_signal():
        run = train(config, **arguments)
    show_run(run)


if __name__ == "__main__":
    use_all_cores()
    with cli.one_line_errors():
        main(sys.argv[1:])
