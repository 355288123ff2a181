"""`train_q`: the value-based way of learning, as a baseline for small games."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax import games as game_register
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game
from azjax.networks import QNetwork, QParams, init_q_network
from azjax.players import TrainedQ, load_compiled, save_q_player
from azjax.training.loop import Progress
from azjax.training.q_config import SELF, QConfig
from azjax.training.q_evaluation import evaluate_q
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
from azjax.training.q_reporting import QReporter
from azjax.training.run_directory import CHECKPOINTS, disk_errors, open_run_directory
from azjax.training.signals import StopSignals


@struct.dataclass
class QState:
    """All that a run is made of; saving it is a checkpoint.

    learner: parameters and the optimiser.
    games: in progress.
    rng_key: of the run; never changed, since every draw folds in a counter.
    """

    learner: QLearner
    games: QGames
    rng_key: jax.Array


@dataclasses.dataclass
class QProgress(Progress):
    """What the host counts.

    iteration: done.
    updates: made.
    """

    iteration: int = 0
    updates: int = 0


@dataclasses.dataclass(frozen=True)
class QRun:
    """What a run of Q-learning leaves.

    directory: the run's.
    trained: what was learnt.
    finished: whether the run came to its end, or was stopped and can go on.
    last: the newest evaluation.
    """

    directory: Path
    trained: TrainedQ
    finished: bool
    last: dict[str, Any]


def train_q(config: QConfig) -> QRun:
    """Learns what every action of a small game is worth, or goes on where a run with
    this directory stopped.

    SIGINT and SIGTERM end the run after the iteration in progress; it is saved then. A
    second one ends it at once.

    Args:
        config: the run's settings.

    Raises:
        ValueError: a player is unknown or cannot be compiled, or the run directory
            holds another run.
        OSError: the run directory cannot be written.
    """
    started = time.monotonic()
    enable_compilation_cache()
    game = game_register.make(config.game)
    network, params = init_q_network(
        jax.random.key(config.seed),
        game.observation_shape,
        game.num_actions,
        config.network,
    )
    trainer = _QTrainer(config, game, network)
    with open_run_directory(config) as directory:
        return _train_q(trainer, params, directory, started)


def _train_q(
    trainer: "_QTrainer", params: QParams, directory: Path, started: float
) -> QRun:
    """Does what `train_q` does, in a directory that is its own."""
    from azjax.training.checkpoints import Checkpoints

    config = trainer.config
    checkpoints = Checkpoints(directory / CHECKPOINTS, keep=1)
    state, progress, notes = trainer.init(params), QProgress(), []
    restored = checkpoints.restore(state, notes.append)
    if restored:
        state, progress = restored[0], QProgress(**restored[1])
        notes.append(f"going on after iteration {progress.iteration}")
    started -= progress.seconds  # as if all sessions had been one
    losses = []
    reporter = QReporter(config, progress.iteration if restored else -1)
    signals = StopSignals(reporter.message, reporter.leave)
    with reporter, signals, checkpoints:
        for note in notes:
            reporter.message(note)
        while True:
            progress.seconds = time.monotonic() - started
            share = config.share(progress.iteration, progress.seconds)
            is_due = progress.is_evaluation_due(
                share, config.evaluations, progress.iteration
            )
            if is_due:
                row = trainer.evaluate(state, progress, share, losses)
                progress.add_evaluation(row, int(share * config.evaluations))
                losses = []
                with disk_errors(directory):
                    reporter.evaluation(row)
            finished = share >= 1
            if is_due or signals.stopping:
                checkpoints.save(state, dataclasses.asdict(progress), mistakes=None)
                with disk_errors(directory):
                    save_q_player(directory / "player", trainer.trained(state))
            if finished or signals.stopping:
                break
            state, loss = trainer.iterate(state, progress, share)
            losses.append(loss)
            reporter.iteration(share, trainer.counts(progress))
        checkpoints.wait()
        if not finished:
            reporter.last_message(
                f"stopped after iteration {progress.iteration}; saved in {directory}; "
                "the same command goes on from there"
            )
    return QRun(directory, trainer.trained(state), finished, progress.last or {})


class _QTrainer:
    """The compiled functions of a run; it holds no arrays but its opponents'."""

    def __init__(self, config: QConfig, game: Game, network: QNetwork):
        self.config = config
        self.game = game
        self.network = network
        self._iterate = jax.jit(
            _make_iterate(config, game, network), donate_argnums=(0, 1)
        )
        self._opponents = {text: load_compiled(text, game) for text in config.opponents}

    def init(self, params: QParams) -> QState:
        """Returns the state before the first iteration."""
        state = QState(
            learner=init_q_learner(params),
            games=start_q_games(self.game, self.config.games),
            rng_key=jax.random.key(self.config.seed + 1),
        )
        # Placed as a checkpoint's arrays are, or a run that goes on is compiled anew.
        return jax.device_put(state, jax.devices()[0])

    def trained(self, state: QState) -> TrainedQ:
        """Returns what is learnt so far."""
        return TrainedQ(
            self.game, self.network, state.learner.params, self.config.network
        )

    def counts(self, progress: QProgress) -> dict[str, Any]:
        """Returns what every row of the metrics begins with."""
        return {
            "iteration": progress.iteration,
            "seconds": progress.seconds,
            "positions": progress.iteration * self.config.batch_moves,
            "games": progress.games,
            "updates": progress.updates,
        }

    def evaluate(
        self, state: QState, progress: QProgress, share: float, losses: Sequence[float]
    ) -> dict[str, Any]:
        """Returns how well it plays, and the mean of the losses since the last time."""
        return {
            **self.counts(progress),
            "epsilon": self.config.epsilon(share),
            "loss": float(np.mean(losses)) if losses else None,
            "matches": evaluate_q(
                self.trained(state), self._opponents, self.config.evaluation_games
            ),
        }

    def iterate(
        self, state: QState, progress: QProgress, share: float
    ) -> tuple[QState, float]:
        """Plays and learns; donates the state. Returns the new one and the loss."""
        config = self.config
        pace = Pace(
            epsilon=jnp.float32(config.epsilon(share)),
            learning_rate=jnp.float32(config.learning_rate * (1 - share)),
        )
        rng_key = jax.random.fold_in(state.rng_key, progress.iteration)
        learner, games, metrics = self._iterate(
            state.learner, state.games, pace, rng_key
        )
        progress.iteration += 1
        progress.games += int(metrics.games)
        progress.updates = int(learner.updates)
        return QState(learner, games, state.rng_key), float(metrics.loss)


def _make_iterate(config: QConfig, game: Game, network: QNetwork) -> Iterate:
    if config.opponent == SELF:
        play_move = make_self_play_move(game, network)
    else:
        opponent = load_compiled(config.opponent, game)
        play_move = make_move_against(game, network, opponent)
    if config.learning == "online":
        return make_online(game, network, play_move, num_moves=config.moves)
    return make_offline(game, network, play_move, config.fit, num_moves=config.moves)
