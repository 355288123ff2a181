"""`train_q`: Q-learning, a baseline for small games."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax import games as game_register
from azjax.arena import Poll
from azjax.compilation_cache import enable_compilation_cache
from azjax.devices import jit_network
from azjax.games import Game
from azjax.networks import QNetwork, QParams, init_q_network
from azjax.players import TrainedQ, load_compiled, save_q_player
from azjax.training import clock
from azjax.training.evaluation import Evaluator
from azjax.training.kept_games import KeptGames
from azjax.training.metrics import Row
from azjax.training.q_config import SELF, QConfig
from azjax.training.q_learner import (
    Iterate,
    Pace,
    QLearner,
    init_q_learner,
    make_offline,
    make_online,
)
from azjax.training.q_play import (
    QGames,
    make_move_against,
    make_self_play_move,
    start_q_games,
)
from azjax.training.run import Hook, Run, open_run
from azjax.training.run_directory import open_run_directory
from azjax.training.sinks import check_sinks


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
    kept: KeptGames | None = None

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
                games=start_q_games(game, config.games),
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
