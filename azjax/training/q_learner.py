"""The two ways of Q-learning: a batch of moves at a time, and one move at a time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax.games import Game
from azjax.networks import QNetwork, QParams
from azjax.training.q_config import FitConfig
from azjax.training.q_play import PlayMove, QGames, Transition
from azjax.training.q_targets import q_loss, q_targets

MAX_GRADIENT_NORM = 1.0  # longer gradients are scaled down to it


@struct.dataclass
class QLearner:
    """What an update changes.

    params: the network's arrays.
    opt_state: the optimiser's.
    updates: `[]` int32; made so far.
    """

    params: QParams
    opt_state: optax.OptState
    updates: jax.Array


class Pace(NamedTuple):
    """What changes as the run goes on; `[]` each.

    epsilon: the share of random moves.
    learning_rate: of Adam.
    """

    epsilon: jax.Array
    learning_rate: jax.Array


class QMetrics(NamedTuple):
    """What an iteration saw, scalars.

    loss: the mean squared error of the values before they were changed by it.
    games: finished.
    """

    loss: jax.Array
    games: jax.Array


Iterate = Callable[
    [QLearner, QGames, Pace, jax.Array], tuple[QLearner, QGames, QMetrics]
]


def make_adam() -> optax.GradientTransformation:
    """Returns Adam without its learning rate, which `Pace` gives."""
    return optax.chain(
        optax.clip_by_global_norm(MAX_GRADIENT_NORM), optax.scale_by_adam()
    )


def init_q_learner(params: QParams) -> QLearner:
    """Returns the state before the first update."""
    return QLearner(params, make_adam().init(params), jnp.int32(0))


def make_online(
    game: Game, network: QNetwork, play_move: PlayMove, *, num_moves: int
) -> Iterate:
    """Returns `(learner, games, pace, rng_key) -> (learner, games, metrics)`, which
    makes an update after every move of the B games, from those B moves.

    With one game it is the algorithm of the textbook (Sutton and Barto 2018, section
    6.5). The key is consumed.
    """

    def iterate(learner: QLearner, games: QGames, pace: Pace, rng_key: jax.Array):
        def play_and_learn(carry, rng_key: jax.Array):
            learner, games = carry
            games, transition = play_move(
                learner.params, games, pace.epsilon, rng_key
            )
            target = q_targets(game, network, learner.params, transition)
            learner, loss = _update(game, network, learner, transition, target, pace)
            return (learner, games), QMetrics(loss, _num_finished(transition))

        (learner, games), metrics = jax.lax.scan(
            play_and_learn, (learner, games), jax.random.split(rng_key, num_moves)
        )
        return learner, games, QMetrics(metrics.loss.mean(), metrics.games.sum())

    return iterate


def make_offline(
    game: Game,
    network: QNetwork,
    play_move: PlayMove,
    config: FitConfig,
    *,
    num_moves: int,
) -> Iterate:
    """Returns `(learner, games, pace, rng_key) -> (learner, games, metrics)`, which
    makes `num_moves` moves in each of the B games and then learns from them all.

    The batch is as those of Mnih et al. 2013, "Playing Atari with deep reinforcement
    learning", drawn in random order, but nothing is kept for the next one. The key is
    consumed.
    """

    def iterate(learner: QLearner, games: QGames, pace: Pace, rng_key: jax.Array):
        play_key, fit_key = jax.random.split(rng_key)

        def play(games: QGames, rng_key: jax.Array):
            return play_move(learner.params, games, pace.epsilon, rng_key)

        games, moves = jax.lax.scan(play, games, jax.random.split(play_key, num_moves))
        batch = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), moves)
        learner, loss = fit(game, network, learner, batch, config, pace, fit_key)
        return learner, games, QMetrics(loss, _num_finished(batch))

    return iterate


def fit(
    game: Game,
    network: QNetwork,
    learner: QLearner,
    batch: Transition,
    config: FitConfig,
    pace: Pace,
    rng_key: jax.Array,
) -> tuple[QLearner, jax.Array]:
    """Fits the network to a batch of moves in several sweeps, in each of which the
    targets are computed once and then fitted until the loss is low.

    Ernst et al. 2005, "Tree-based batch mode reinforcement learning", with a network in
    place of trees. The key is consumed.

    Args:
        game: what is played.
        network: its structure.
        learner: what is changed.
        batch: N moves; those that fill no whole minibatch are left out, others in each
            pass.
        config: how long.
        pace: with the learning rate.
        rng_key: for the order of the moves.

    Returns:
        The learner, and the mean loss of the first pass.
    """
    num_batches = len(batch.action) // config.batch_size

    def in_batches(tree: Any, order: jax.Array) -> Any:
        order = order[: num_batches * config.batch_size]
        rows = order.reshape(num_batches, config.batch_size)
        return jax.tree.map(lambda leaf: leaf[rows], tree)

    def sweep(learner: QLearner, rng_key: jax.Array):
        target = q_targets(game, network, learner.params, batch)

        def is_unfinished(carry):
            _, epoch, loss = carry
            return (epoch < config.max_epochs) & (loss >= config.low_loss)

        def one_pass(carry):
            learner, epoch, _ = carry
            order = jax.random.permutation(
                jax.random.fold_in(rng_key, epoch), len(target)
            )
            learner, losses = jax.lax.scan(
                lambda learner, part: _update(game, network, learner, *part, pace),
                learner,
                in_batches((batch, target), order),
            )
            return learner, epoch + 1, losses.mean()

        # A first pass is always made.
        learner, epoch, loss = one_pass((learner, jnp.int32(0), jnp.float32(0)))
        first_loss = loss
        learner, *_ = jax.lax.while_loop(
            is_unfinished, one_pass, (learner, epoch, loss)
        )
        return learner, first_loss

    keys = jax.random.split(rng_key, config.sweeps)
    learner, losses = jax.lax.scan(sweep, learner, keys)
    return learner, losses[0]


def _update(
    game: Game,
    network: QNetwork,
    learner: QLearner,
    transition: Transition,
    target: jax.Array,
    pace: Pace,
) -> tuple[QLearner, jax.Array]:
    loss, gradients = jax.value_and_grad(q_loss)(
        learner.params, game, network, transition, target
    )
    updates, opt_state = make_adam().update(gradients, learner.opt_state)
    updates = jax.tree.map(lambda update: -pace.learning_rate * update, updates)
    params = optax.apply_updates(learner.params, updates)
    return QLearner(params, opt_state, learner.updates + 1), loss


def _num_finished(transition: Transition) -> jax.Array:
    return (transition.discount == 0).sum()
