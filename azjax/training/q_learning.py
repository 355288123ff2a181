"""`train_q`: Q-learning, a baseline for small games."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax import games as game_register
from azjax.arena import Poll
from azjax.compilation_cache import enable_compilation_cache
from azjax.devices import jit_network
from azjax.games import Game, State
from azjax.games.chance import after_chance
from azjax.games.core import initial_states, select
from azjax.networks import QNetwork, QParams, action_value, init_q_network
from azjax.players import Player, TrainedQ, load_compiled, save_q_player
from azjax.players.simple import epsilon_greedy, legal_action_values
from azjax.training.config import SELF, FitConfig, QConfig
from azjax.training.evaluation import Evaluator
from azjax.training.run import clock
from azjax.training.run.directory import open_run_directory
from azjax.training.run.game_writer import GameWriter
from azjax.training.run.metrics import Row
from azjax.training.run.open_run import Hook, Run, open_run
from azjax.training.run.sinks import check_sinks

MAX_GRADIENT_NORM = 1.0  # norm at which gradients are clipped
_CHANCE, _START = 1000, 1001  # folded into keys that are used elsewhere


@struct.dataclass
class QGames:
    """B games in progress.

    state: positions, leaves `[B, ...]`; none is finished.
    side: `[B]` int8; the learner's player index against an opponent, which alternates
        from game to game.
    """

    state: State
    side: jax.Array


class Transition(NamedTuple):
    """A move of the learner in each of B positions.

    state: before the move, leaves `[B, ...]`.
    action: `[B]` int32.
    reward: `[B]` float32 in [-1, 1], to the player who moved; against an opponent after
        the reply.
    discount: `[B]` float32, the factor of the next position's value: 0 if the game has
        ended, -1 if the other side moves next, 1 if the same side does.
    next_state: leaves `[B, ...]`.
    is_move: `[B]` bool; False if the learner made no move.
    """

    state: State
    action: jax.Array
    reward: jax.Array
    discount: jax.Array
    next_state: State
    is_move: jax.Array


PlayMove = Callable[[QParams, QGames, jax.Array, jax.Array], tuple[QGames, Transition]]


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


@struct.dataclass
class QState:
    """The complete training state; a checkpoint stores it.

    learner: parameters and the optimizer's state.
    games: games in progress.
    rng_key: the run's key; constant, a counter is folded in for each use.
    iteration: `[]` int32; completed iterations.
    """

    learner: QLearner
    games: QGames
    rng_key: jax.Array
    iteration: jax.Array


def train_q(
    config: QConfig,
    *,
    on_iteration: Hook | None = None,
    on_evaluation: Hook | None = None,
) -> Run[TrainedQ]:
    """Learns the action values of a small game, or continues a stopped run.

    It plays and learns on one device, in one process; evaluations use all devices of
    the process.

    SIGINT and SIGTERM stop the run after the current iteration and save it. A second
    signal ends the process at once.

    Args:
        config: the run's settings.
        on_iteration: called with the metrics of each iteration.
        on_evaluation: called with the metrics of each evaluation, after plotting.

    Raises:
        ValueError: a player is unknown or cannot be compiled, the run directory holds
            another run or no readable checkpoint, or a loss is not finite.
        OSError: the run directory cannot be written.
    """
    started = clock.now()
    enable_compilation_cache()
    check_sinks(config.report.sinks)
    task = QLearning(config)
    notes: list[str] = []
    with (
        open_run_directory(config, report=notes.append) as directory,
        open_run(
            task,
            directory,
            notes=notes,
            started=started,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        ) as run,
    ):
        for progress in run:
            run.state, metrics = task.step(run.state, progress, run.enter)
            run.report(metrics)
    return run.result()


class QLearning:
    """Q-learning as the task of a run; see `Task`."""

    state_version = 4  # raised when the layout of `QState`, totals or digest changes
    game_writer: GameWriter | None = None

    def __init__(self, config: QConfig):
        self.config, self.positions = config, config.batch_moves
        self.totals: dict[str, Any] = {"games": 0}
        self._game = game = game_register.make(config.game)
        self._network, self._params = init_q_network(
            jax.random.key(config.seed),
            game.observation_shape,
            game.num_actions,
            config.network,
        )
        self._evaluator = Evaluator(game, config.evaluation, config.opponents)
        self._play_and_learn = jit_network(
            make_iterate(config, game, self._network), donate_argnums=(0, 1)
        )
        self._norm = jax.jit(optax.tree.norm)
        self._device = jax.sharding.SingleDeviceSharding(jax.devices()[0])

        # Placed like restored arrays; otherwise a continued run would compile twice.
        @functools.partial(jax.jit, out_shardings=self._device)
        def init(params: QParams) -> QState:
            return QState(
                learner=init_q_learner(params),
                games=start_q_games(
                    game, config.games, jax.random.key(config.seed + 2)
                ),
                rng_key=jax.random.key(config.seed + 1),
                iteration=jnp.int32(0),
            )

        self._init = init

    def init(self) -> QState:
        """Returns the initial state."""
        return self._init(self._params)

    def shardings(self, state: QState) -> QState:
        """Returns the sharding of each leaf of a state."""
        return jax.tree.map(lambda leaf: self._device, state)

    def step(
        self, state: QState, progress: float, enter: Callable[[str], None]
    ) -> tuple[QState, dict[str, Any]]:
        """Plays and learns."""
        enter("self-play and updates")
        epsilon = self.config.epsilon(progress)
        rate = self.config.learning_rate * (1 - progress)
        learner, games, metrics = self._play_and_learn(
            state.learner,
            state.games,
            Pace(epsilon=jnp.float32(epsilon), learning_rate=jnp.float32(rate)),
            jax.random.fold_in(state.rng_key, state.iteration),
        )
        state = QState(learner, games, state.rng_key, state.iteration + 1)
        metrics, norm = jax.device_get((metrics, self._norm(learner.params)))
        self.totals = {"games": self.totals["games"] + int(metrics.games)}
        return state, {
            "value_loss": float(metrics.loss),
            "weight_norm": float(norm),
            "learning_rate": rate,
            "epsilon": epsilon,
        }

    def counts(self, state: QState) -> dict[str, Any]:
        """Returns games and updates."""
        updates = int(state.learner.updates)
        return {"games": int(self.totals["games"]), "updates": updates}

    def player(self, state: QState) -> TrainedQ:
        """Returns the player of a state."""
        params = state.learner.params
        return TrainedQ(self._game, self._network, params, self.config.network)

    def evaluate(self, player: TrainedQ, poll: Poll) -> dict[str, Any]:
        """Returns the strength of a player."""
        return self._evaluator.evaluate({"network": player.player()}, poll)

    def save_player(self, directory: Path, player: TrainedQ) -> None:
        """Writes the player."""
        save_q_player(directory, player)

    def iteration_seconds(self, row: Row, progress: float) -> float:
        """Predicts the seconds of an iteration."""
        return self.positions / row["positions_per_second"]


def make_iterate(config: QConfig, game: Game, network: QNetwork) -> Iterate:
    """Returns `(learner, games, pace, rng_key) -> (learner, games, metrics)`, an
    iteration of self-play and updates."""
    if config.opponent == SELF:
        play_move = make_self_play_move(game, network)
    else:
        opponent = load_compiled(config.opponent, game)
        play_move = make_move_against(game, network, opponent)
    if config.learning == "online":
        return make_online(game, network, play_move, num_moves=config.moves)
    return make_offline(game, network, play_move, config.fit, num_moves=config.moves)


def start_q_games(game: Game, num_games: int, rng_key: jax.Array) -> QGames:
    """Returns new games; the learner is player 0 in every other one. The key, from
    which the outcomes of chance are drawn, is consumed."""
    state, _ = after_chance(game, rng_key, initial_states(game, num_games))
    return QGames(state=state, side=(jnp.arange(num_games) % 2).astype(jnp.int8))


def make_self_play_move(game: Game, network: QNetwork) -> PlayMove:
    """Returns `(params, games, epsilon, rng_key) -> (games, transition)`.

    It makes one move of the learner, who plays both sides, in each game; the moves of
    both sides are training data. The key is consumed.
    """

    def play_move(
        params: QParams, games: QGames, epsilon: jax.Array, rng_key: jax.Array
    ) -> tuple[QGames, Transition]:
        values = legal_action_values(game, network, params, games.state)
        action = epsilon_greedy(rng_key, values, epsilon)
        after = _step(game, games.state, action, rng_key)
        every = jnp.ones_like(games.state.terminated)
        return _finish(game, games, action, after, rng_key, is_move=every)

    return play_move


def make_move_against(game: Game, network: QNetwork, opponent: Player) -> PlayMove:
    """Returns `(params, games, epsilon, rng_key) -> (games, transition)`.

    It makes one move of the learner in each game, and the opponent's moves up to the
    learner's next turn. The next position is the learner's own: the opponent belongs to
    the environment, and only the learner's moves are training data. Where the opponent
    starts a game, the learner makes no move. The key is consumed.
    """

    def play_move(
        params: QParams, games: QGames, epsilon: jax.Array, rng_key: jax.Array
    ) -> tuple[QGames, Transition]:
        learner_key, opponent_key = jax.random.split(rng_key)
        state = games.state
        is_move = state.current_player == games.side
        values = legal_action_values(game, network, params, state)
        action = epsilon_greedy(learner_key, values, epsilon)
        moved = _step(game, state, action, learner_key)
        moved = jax.vmap(select)(is_move, moved, state)

        def is_opponents(state: State) -> jax.Array:
            return (state.current_player != games.side) & ~state.terminated

        def reply(carry):
            after, rng_key = carry
            # Where it is not to move, it chooses in the position before, in vain.
            is_reply = is_opponents(after)
            position = jax.vmap(select)(is_reply, after, state)
            action = opponent.choose(rng_key, position).action
            replied = _step(game, after, action, rng_key)
            after = jax.vmap(select)(is_reply, replied, after)
            return after, jax.random.fold_in(jax.random.clone(rng_key), 1)

        after, _ = jax.lax.while_loop(
            lambda carry: is_opponents(carry[0]).any(), reply, (moved, opponent_key)
        )
        return _finish(game, games, action, after, learner_key, is_move=is_move)

    return play_move


def _step(game: Game, states: State, action: jax.Array, rng_key: jax.Array) -> State:
    """Returns B positions after actions and the outcomes of chance that follow; these
    have keys of their own, folded from a key that is used elsewhere."""
    chance_key = jax.random.fold_in(jax.random.clone(rng_key), _CHANCE)
    return after_chance(game, chance_key, jax.vmap(game.step)(states, action))[0]


def _finish(
    game: Game,
    games: QGames,
    action: jax.Array,
    after: State,
    rng_key: jax.Array,
    *,
    is_move: jax.Array,
) -> tuple[QGames, Transition]:
    """Replaces finished games by new ones; returns the games and the transition. The
    first outcomes of chance have a key that is folded from `rng_key`."""
    rewards = jax.vmap(game.rewards)(after)
    mover = games.state.current_player
    sign = jnp.where(after.current_player == mover, 1.0, -1.0)
    transition = Transition(
        state=games.state,
        action=action,
        reward=jnp.where(mover == 1, rewards[:, 1], rewards[:, 0]),
        discount=jnp.where(after.terminated, 0.0, sign),
        next_state=after,
        is_move=is_move,
    )
    start_key = jax.random.fold_in(jax.random.clone(rng_key), _START)
    new = start_q_games(game, len(mover), start_key).state
    state = jax.vmap(select)(after.terminated, new, after)
    side = jnp.where(after.terminated, 1 - games.side, games.side)
    return QGames(state, side), transition


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
            return (learner, games), QMetrics(loss, (transition.discount == 0).sum())

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
        return fitted, games, QMetrics(loss, (batch.discount == 0).sum())

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
        # Shuffled, because neighbours are moves of one game.
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
        # The targets stay fixed while the network is fitted to them.
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
