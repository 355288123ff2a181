"""`train`: the whole of learning by self-play."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from azjax import games as game_register
from azjax.compilation_cache import enable_compilation_cache
from azjax.games import Game
from azjax.networks import Network, Parts, Variables
from azjax.players import TrainedPlayer, first_network, save_player
from azjax.training.config import TrainConfig
from azjax.training.evaluation import Evaluator
from azjax.training.initial_player import initial_variables
from azjax.training.learner import (
    LearnerMetrics,
    LearnerState,
    init_learner,
    learning_rate,
    make_optimizer,
    make_update,
)
from azjax.training.memory import check_memory, memory_errors, required_parts
from azjax.training.metrics import with_scores
from azjax.training.optimizer_identity import DEFAULT, optimizer_identity
from azjax.training.replay import Index, Replay, empty_replay, insert, make_index
from azjax.training.reporting import Reporter, duration
from azjax.training.run_directory import (
    CHECKPOINTS,
    disk_errors,
    has_begun,
    open_run_directory,
)
from azjax.training.self_play import Games, make_self_play, start_games
from azjax.training.signals import StopSignals
from azjax.training.targets import horizon

STATE_VERSION = 2  # raised when the layout of `TrainState` changes


@struct.dataclass
class TrainState:
    """All that a run is made of; saving it is a checkpoint.

    learner: parameters, their average, the optimiser.
    games: in progress.
    replay: positions to learn from.
    rng_key: of the run; never changed, since every draw folds in a counter.
    iteration: `[]` int32; iterations done.
    """

    learner: LearnerState
    games: Games
    replay: Replay
    rng_key: jax.Array
    iteration: jax.Array


@dataclasses.dataclass
class Progress:
    """What the host counts, saved beside the state.

    iteration: done.
    seconds: used, over all sessions.
    games: finished.
    updates: made.
    evaluations: made, beside that of the first network.
    eligible: positions that could be drawn at some time.
    delay: moves that were made in their games until then, summed.
    waiting: positions that may still become eligible.
    first: the evaluation of the first network.
    last: the newest evaluation.
    """

    iteration: int = 0
    seconds: float = 0.0
    games: int = 0
    updates: int = 0
    evaluations: int = 0
    eligible: int = 0
    delay: float = 0.0
    waiting: int = 0
    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None

    def is_evaluation_due(self, share: float, times: int) -> bool:
        """Returns whether to evaluate at this share of the run: before it, `times`
        times in it, and at its end, but not again when a finished run is begun."""
        if self.first is None or int(share * times) > self.evaluations:
            return True
        return share >= 1 and (self.last or {}).get("iteration") != self.iteration

    def add_evaluation(self, row: dict[str, Any], evaluations: int) -> None:
        """Takes note of an evaluation."""
        self.first, self.last = self.first or row, row
        self.evaluations = evaluations


@dataclasses.dataclass(frozen=True)
class Run:
    """What training leaves.

    directory: the run's.
    player: what was learnt.
    finished: whether the run came to its end, or was stopped and can go on.
    first: the evaluation of the first network.
    last: the newest evaluation.
    """

    directory: Path
    player: TrainedPlayer
    finished: bool
    first: dict[str, Any] | None
    last: dict[str, Any] | None


def train(
    config: TrainConfig,
    *,
    optimizer: optax.GradientTransformation | None = None,
    parts: Parts | None = None,
    on_evaluation: Callable[[Mapping[str, Any]], None] | None = None,
) -> Run:
    """Learns a game by self-play, or goes on where a run with this directory stopped.

    SIGINT and SIGTERM end the run after the iteration in progress; it is saved then. A
    second one ends it at once.

    Args:
        config: the run's settings.
        optimizer: in place of AdamW with its schedule.
        parts: modules of the user's own in the network.
        on_evaluation: called with each evaluation, once its plot is drawn.

    Raises:
        ValueError: the run directory holds another run, no checkpoint in it can be
            read, an opponent to be evaluated against is unknown, the initial player is
            for another game or has another network, or the run cannot fit into the
            device's memory.
        OSError: the run directory cannot be written.
    """
    started = time.monotonic()
    enable_compilation_cache()
    game = game_register.make(config.game)
    network, variables = first_network(config.seed, game, config.network, parts)
    if config.initial_player is not None and not has_begun(config.directory):
        variables = initial_variables(config, game, parts)
    trainer = _Trainer(
        config, game, network, optimizer, has_own_parts=parts is not None
    )
    evaluator = Evaluator(game, config)
    parts_needed = required_parts(
        config, game, network, variables, lambda: trainer.init(variables)
    )
    check_memory(config, parts_needed)
    notes: list[str] = []
    identity = optimizer_identity(optimizer, variables.params) if optimizer else DEFAULT
    with (
        open_run_directory(config, identity, notes.append) as directory,
        memory_errors(config, parts_needed),
    ):
        return _train(
            trainer,
            variables,
            directory,
            notes=notes,
            evaluator=evaluator,
            started=started,
            on_evaluation=on_evaluation,
        )


def _train(
    trainer: "_Trainer",
    variables: Variables,
    directory: Path,
    *,
    notes: list[str],
    evaluator: Evaluator,
    started: float,
    on_evaluation: Callable[[Mapping[str, Any]], None] | None,
) -> Run:
    """Does what `train` does, in a directory that is its own."""
    from azjax.training.checkpoints import Checkpoints

    config = trainer.config
    state, progress = trainer.init(variables), Progress()
    checkpoints = Checkpoints(
        directory / CHECKPOINTS, keep=config.checkpoint.keep, version=STATE_VERSION
    )
    restored = checkpoints.restore(state, notes.append)
    if restored:
        state, progress = restored[0], Progress(**restored[1])
        progress.first = progress.first and with_scores(progress.first)
        progress.last = progress.last and with_scores(progress.last)
        doing = "finished" if trainer.share(progress) >= 1 else "going on"
        notes.append(f"{doing} after iteration {progress.iteration} in {directory}")
    reporter = Reporter(directory, config, restored and restored[1])
    started -= progress.seconds  # as if all sessions had been one

    def save(state: TrainState, *, evaluated: bool) -> None:
        progress.seconds = time.monotonic() - started
        mistakes = (progress.last or {}).get("network_mistakes") if evaluated else None
        checkpoints.save(state, dataclasses.asdict(progress), mistakes=mistakes)
        with disk_errors(directory):
            save_player(directory / "player", trainer.player(state))

    signals = StopSignals(reporter.message, reporter.leave)
    with reporter, signals, checkpoints:
        for note in notes:
            reporter.message(note)
        saved_at = time.monotonic()
        while True:
            progress.seconds = time.monotonic() - started
            share = trainer.share(progress)
            finished = share >= 1
            evaluated = progress.is_evaluation_due(share, config.evaluation.times)
            if evaluated:
                reporter.compiling("evaluation")
                row = evaluator.evaluate(trainer.player(state))
                row |= trainer.counts(progress)
                progress.add_evaluation(row, int(share * config.evaluation.times))
                reporter.evaluation(row)
                if on_evaluation is not None:
                    on_evaluation(row)
            if finished or signals.stopping:
                break
            minutes = (time.monotonic() - saved_at) / 60
            if evaluated or minutes > config.checkpoint.every_minutes:
                save(state, evaluated=evaluated)
                saved_at = time.monotonic()
            state = trainer.iterate(state, progress, share, reporter)
        save(state, evaluated=evaluated)
        checkpoints.wait()
        if not finished:
            reporter.last_message(
                f"stopped after iteration {progress.iteration}"
                f"{_time_left(config, progress)}; saved in {directory}; the same "
                "command goes on from there"
            )
    return Run(
        directory, trainer.player(state), finished, progress.first, progress.last
    )


def _time_left(config: TrainConfig, progress: Progress) -> str:
    if config.minutes is None:
        return ""
    seconds = max(0.0, 60 * config.minutes - progress.seconds)
    return f", with {duration(seconds)} left"


class _Trainer:
    """The compiled functions of a run; it holds no arrays."""

    def __init__(
        self,
        config: TrainConfig,
        game: Game,
        network: Network,
        optimizer: optax.GradientTransformation | None,
        has_own_parts: bool,
    ):
        self.config = config
        self.game = game
        self.network = network
        self.has_own_parts = has_own_parts
        self.has_own_optimizer = optimizer is not None
        self.optimizer = optimizer or make_optimizer(config.learner)
        self.update = make_update(game, network, self.optimizer, config.learner)
        self.insert = jax.jit(insert, donate_argnums=0)
        self.index = jax.jit(
            functools.partial(
                make_index,
                trace=config.learner.trace,
                horizon=horizon(config.learner.trace, game.max_moves),
            ),
            donate_argnums=0,
        )
        self.self_play = functools.cache(
            lambda num_simulations: make_self_play(
                game,
                network,
                config.search,
                config.self_play,
                num_simulations=num_simulations,
                policy_entries=config.replay.policy_entries,
            )
        )

    def init(self, variables) -> TrainState:
        """Returns the state before the first iteration."""
        config = self.config
        run_key, games_key = jax.random.split(jax.random.key(config.seed + 1))
        state = TrainState(
            learner=init_learner(variables, self.optimizer),
            games=jax.jit(start_games, static_argnums=(0, 1))(
                self.game, config.self_play, games_key
            ),
            replay=empty_replay(
                self.game,
                num_chunks=config.replay_chunks,
                moves_per_chunk=config.self_play.moves_per_chunk,
                num_games=config.self_play.games,
                policy_entries=config.replay.policy_entries,
            ),
            rng_key=run_key,
            iteration=jnp.int32(0),
        )
        # Placed as a checkpoint's arrays are, or a run that goes on is compiled anew.
        return jax.device_put(state, jax.devices()[0])

    def player(self, state: TrainState) -> TrainedPlayer:
        """Returns the player that the averaged weights make."""
        return TrainedPlayer(
            game=self.game,
            network=self.network,
            variables=state.learner.averaged,
            config=self.config.network,
            search=self.config.search,
            seed=self.config.seed,
            has_own_parts=self.has_own_parts,
        )

    def share(self, progress: Progress) -> float:
        """Returns the share of the run that is over, in [0, 1]."""
        lengths = (
            (progress.iteration, self.config.iterations),
            (progress.seconds / 60, self.config.minutes),
        )
        return min(1.0, *(done / length for done, length in lengths if length))

    def counts(self, progress: Progress) -> dict[str, Any]:
        """Returns what every row of the metrics begins with."""
        positions = progress.iteration * self.config.chunk_positions
        decided = positions - progress.waiting
        eligible = progress.eligible
        return {
            "iteration": progress.iteration,
            "seconds": progress.seconds,
            "positions": positions,
            "games": progress.games,
            "updates": progress.updates,
            "eligible_share": eligible / decided if decided else None,
            "eligibility_delay": progress.delay / eligible if eligible else None,
        }

    def iterate(
        self, state: TrainState, progress: Progress, share: float, reporter: Reporter
    ) -> TrainState:
        """Plays one chunk and learns from the replay; donates the state."""
        config = self.config
        stages = config.self_play.simulations
        simulations = stages[min(int(share * len(stages)), len(stages) - 1)]
        play_key, update_key = jax.random.split(
            jax.random.fold_in(state.rng_key, progress.iteration)
        )
        began = time.monotonic()
        reporter.compiling(f"self-play with {simulations} simulations")
        games, chunk, played = self.self_play(simulations)(
            state.learner.averaged, state.games, play_key
        )
        replay = self.insert(state.replay, chunk, state.iteration)
        del chunk  # the updates need its memory
        played = jax.device_get(played)
        self_play_seconds = time.monotonic() - began

        progress.iteration += 1
        positions = progress.iteration * config.chunk_positions
        learner, losses = state.learner, None
        if positions >= config.replay.min_positions:
            reporter.compiling("the update")
            replay, index = self._index(replay, progress)
            learner, losses = self._learn(
                learner, (replay, index), update_key, progress, share
            )
        else:
            progress.waiting = positions
        seconds = time.monotonic() - began
        progress.games += int(played.games)
        progress.seconds += seconds
        reporter.iteration(
            self.counts(progress)
            | {
                "positions_per_second": config.chunk_positions / seconds,
                "simulations": simulations,
                "policy_loss": None,
                "value_loss": None,
                "gradient_norm": None,
                "learning_rate": None
                if self.has_own_optimizer
                else float(learning_rate(config.learner, share)),
                **({} if losses is None else losses),
                **{
                    name: float(value)
                    for name, value in played._asdict().items()
                    if name != "games"
                },
                "self_play_seconds": self_play_seconds,
                "update_seconds": seconds - self_play_seconds,
            }
        )
        return TrainState(
            learner=learner,
            games=games,
            replay=replay,
            rng_key=state.rng_key,
            iteration=state.iteration + 1,
        )

    def _index(self, replay: Replay, progress: Progress) -> tuple[Replay, Index]:
        """Finds what can be drawn and counts it; donates the replay."""
        replay, index, eligibility = self.index(
            replay,
            jnp.int32(progress.iteration * self.config.self_play.moves_per_chunk),
            jnp.int32(self.config.window_moves(progress.iteration)),
        )
        eligibility = jax.device_get(eligibility)
        progress.eligible += int(eligibility.newly)
        progress.delay += float(eligibility.delay)
        progress.waiting = int(eligibility.waiting)
        return replay, index

    def _learn(
        self,
        learner: LearnerState,
        positions: tuple[Replay, Index],
        rng_key: jax.Array,
        progress: Progress,
        share: float,
    ) -> tuple[LearnerState, dict[str, float] | None]:
        """Makes an iteration's updates; returns the mean of what they saw."""
        config = self.config
        _, index = positions
        if int(index.size) == 0:  # no position is eligible yet
            return learner, None
        seen = []
        for _ in range(config.updates_per_iteration):
            learner, metrics = self.update(
                learner,
                *positions,
                jax.random.fold_in(rng_key, progress.updates),
                jnp.float32(share),
            )
            seen.append(metrics)
            progress.updates += 1
        columns = zip(*jax.device_get(seen), strict=True)
        return learner, {
            name: float(np.mean(column))
            for name, column in zip(LearnerMetrics._fields, columns, strict=True)
        }
