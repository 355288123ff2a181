"""Q-learning from batches of moves (offline) and from single moves (online)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax.games import Game
from azjax.networks import QNetwork, QParams, action_value
from azjax.players.q_learning import legal_action_values
from azjax.training.q_config import FitConfig
from azjax.training.q_play import PlayMove, QGames, Transition

MAX_GRADIENT_NORM = 1.0  # norm at which gradients are clipped


@struct.dataclass
class QLearner:
    """The learner's state.

    params: network parameters.
    opt_state: the optimizer's state.
    updates: `[]` int32; number of updates.
    """

    params: QParams
    opt_state: optax.OptState
    updates: jax.Array


class Pace(NamedTuple):
    """Scheduled values, `[]` each.

    epsilon: fraction of random moves.
    learning_rate: of Adam.
    """

    epsilon: jax.Array
    learning_rate: jax.Array


class QMetrics(NamedTuple):
    """Metrics of an iteration, scalars.

    loss: mean squared error of the values before the updates.
    games: finished games.
    """

    loss: jax.Array
    games: jax.Array


Iterate = Callable[
    [QLearner, QGames, Pace, jax.Array], tuple[QLearner, QGames, QMetrics]
]


def make_adam() -> optax.GradientTransformation:
    """Returns Adam without a learning rate, which `Pace` gives."""
    return optax.chain(
        optax.clip_by_global_norm(MAX_GRADIENT_NORM), optax.scale_by_adam()
    )


def init_q_learner(params: QParams) -> QLearner:
    """Returns the initial state."""
    return QLearner(params, make_adam().init(params), jnp.int32(0))


def make_online(
    game: Game, network: QNetwork, play_move: PlayMove, *, num_moves: int
) -> Iterate:
    """Returns `(learner, games, pace, rng_key) -> (learner, games, metrics)`.

    It makes an update after every move of the B games, from those B moves; with one
    game this is the textbook algorithm (Sutton and Barto 2018, section 6.5). The key is
    consumed.
    """
    update = _make_update(game, network)

    def iterate(learner: QLearner, games: QGames, pace: Pace, rng_key: jax.Array):
        def play_and_learn(carry, rng_key: jax.Array):
            learner, games = carry
            games, transition = play_move(learner.params, games, pace.epsilon, rng_key)
            target = q_targets(game, network, learner.params, transition)
            learner, loss = update(learner, transition, target, pace)
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
    """Returns `(learner, games, pace, rng_key) -> (learner, games, metrics)`.

    It makes `num_moves` moves in each of the B games and then learns from all of them
    by `make_fit`. The key is consumed.
    """
    fit = make_fit(game, network, config)

    def iterate(learner: QLearner, games: QGames, pace: Pace, rng_key: jax.Array):
        play_key, fit_key = jax.random.split(rng_key)

        def play(games: QGames, rng_key: jax.Array):
            return play_move(learner.params, games, pace.epsilon, rng_key)

        games, moves = jax.lax.scan(play, games, jax.random.split(play_key, num_moves))
        batch = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), moves)
        fitted, loss = fit(learner, batch, pace, fit_key)
        return fitted, games, QMetrics(loss, _num_finished(batch))

    return iterate


def make_fit(
    game: Game, network: QNetwork, config: FitConfig
) -> Callable[
    [QLearner, Transition, Pace, jax.Array],
    tuple[QLearner, jax.Array],
]:
    """Returns `(learner, batch, pace, rng_key) -> (learner, loss)`, which fits the
    network to N moves. The key is consumed.

    Fitted Q iteration (Ernst et al. 2005, "Tree-based batch mode reinforcement
    learning") with a network in place of trees: each sweep computes the targets once
    and fits them in shuffled minibatches (Mnih et al. 2013, "Playing Atari with deep
    reinforcement learning") until the loss is low. A pass omits moves that do not fill
    a minibatch. The loss is that of the first pass.
    """
    update = _make_update(game, network)

    def one_pass(learner, batch, target, pace, rng_key):
        num_batches = len(target) // config.batch_size
        order = jax.random.permutation(rng_key, len(target))
        rows = order[: num_batches * config.batch_size].reshape(num_batches, -1)
        learner, losses = jax.lax.scan(
            lambda learner, part: update(learner, part[0], part[1], pace),
            learner,
            jax.tree.map(lambda leaf: leaf[rows], (batch, target)),
        )
        return learner, losses.mean()

    def sweep(learner, batch, pace, rng_key):
        target = q_targets(game, network, learner.params, batch)
        keys = jax.random.split(rng_key, config.max_epochs)

        def is_unfinished(carry):
            _, epoch, _, loss = carry
            return (epoch < config.max_epochs) & (loss >= config.low_loss)

        def next_epoch(carry):
            learner, epoch, first_loss, _ = carry
            learner, loss = one_pass(learner, batch, target, pace, keys[epoch])
            first_loss = jnp.where(epoch == 0, loss, first_loss)
            return learner, epoch + 1, first_loss, loss

        unknown = jnp.float32(jnp.inf)
        carry = (learner, jnp.int32(0), unknown, unknown)
        learner, _, first_loss, _ = jax.lax.while_loop(is_unfinished, next_epoch, carry)
        return learner, first_loss

    def fit(learner: QLearner, batch: Transition, pace: Pace, rng_key: jax.Array):
        learner, losses = jax.lax.scan(
            lambda learner, key: sweep(learner, batch, pace, key),
            learner,
            jax.random.split(rng_key, config.sweeps),
        )
        return learner, losses[0]

    return fit


def q_targets(
    game: Game, network: QNetwork, params: QParams, transition: Transition
) -> jax.Array:
    """Computes the target of each move's value, for the player who made it.

    `reward + discount * max_a' Q(s', a')` over the legal actions a' (Watkins 1989,
    "Learning from delayed rewards"; Sutton and Barto 2018, equation 6.8). Rewards are 0
    before a game's end. If the other side moves in s', the discount is -1, as in
    negamax. Q(s', .) is the network of the player to move in s': with a network per
    side, the first player's learns from the second player's and vice versa.

    Args:
        game: the game.
        network: its structure.
        params: its parameters.
        transition: B moves.

    Returns:
        `[B]` targets in [-1, 1].
    """
    # A finished position may have no legal action; its value is not used.
    is_over = transition.discount == 0
    values = legal_action_values(game, network, params, transition.next_state)
    best = jnp.where(is_over, 0.0, values.max(axis=-1))
    return transition.reward + transition.discount * best


def q_loss(
    params: QParams,
    game: Game,
    network: QNetwork,
    transition: Transition,
    target: jax.Array,
) -> jax.Array:
    """Computes the mean squared error of the values of the learner's moves.

    Args:
        params: network parameters.
        game: the game.
        network: its structure.
        transition: B moves.
        target: `[B]`, treated as a constant.
    """
    state = transition.state
    observation = jax.vmap(game.observe)(state)
    value = action_value(
        network, params, observation, state.current_player, transition.action
    )
    error = jnp.where(transition.is_move, value - jax.lax.stop_gradient(target), 0.0)
    return (error**2).sum() / jnp.maximum(transition.is_move.sum(), 1)


def _make_update(game: Game, network: QNetwork):
    """Returns `(learner, transition, target, pace) -> (learner, loss)`."""
    optimizer = make_adam()

    def update(learner: QLearner, transition: Transition, target, pace: Pace):
        loss, gradients = jax.value_and_grad(q_loss)(
            learner.params, game, network, transition, target
        )
        updates, opt_state = optimizer.update(gradients, learner.opt_state)
        params = jax.tree.map(
            lambda param, update: param - pace.learning_rate * update,
            learner.params,
            updates,
        )
        return QLearner(params, opt_state, learner.updates + 1), loss

    return update


def _num_finished(transition: Transition) -> jax.Array:
    return (transition.discount == 0).sum()
