"""`train`: AlphaZero's loop. Play, learn, evaluate, save."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from azjax import games as game_register
from azjax.compilation_cache import enable_compilation_cache
from azjax.networks import Parts, Variables
from azjax.players import TrainedPlayer, first_network, save_player
from azjax.training.config import TrainConfig
from azjax.training.evaluation import Evaluator
from azjax.training.initial_player import initial_variables
from azjax.training.iteration import (
    Algorithm,
    TrainState,
    make_algorithm,
    train_iteration,
)
from azjax.training.learner import Loss, learning_rate
from azjax.training.memory import check_memory, memory_errors, required_parts
from azjax.training.metrics import with_scores
from azjax.training.optimizer_identity import DEFAULT, optimizer_identity
from azjax.training.reporting import Reporter, duration
from azjax.training.run_directory import (
    CHECKPOINTS,
    disk_errors,
    has_begun,
    open_run_directory,
)
from azjax.training.sampling import Sampler
from azjax.training.signals import StopSignals
from azjax.training.targets import ValueTarget

STATE_VERSION = 3  # raised when the layout of `TrainState` changes


@dataclasses.dataclass
class Progress:
    """What the host counts over all sessions, saved beside the state.

    seconds: used.
    games: finished.
    evaluations: made, without that of the first network.
    eligible: positions that could be sampled at some time.
    delay: moves that were made in their games until then, summed.
    waiting: positions that may still become eligible.
    first: the evaluation of the first network.
    last: the newest evaluation.
    """

    seconds: float = 0.0
    games: int = 0
    evaluations: int = 0
    eligible: int = 0
    delay: float = 0.0
    waiting: int = 0
    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None

    def is_evaluation_due(self, share: float, times: int, iteration: int) -> bool:
        """Returns whether to evaluate at this share of the run: before it, `times`
        times in it, and at its end, but not again when a finished run is begun."""
        if self.first is None or int(share * times) > self.evaluations:
            return True
        return share >= 1 and (self.last or {}).get("iteration") != iteration

    def add_evaluation(self, row: dict[str, Any], evaluations: int) -> None:
        """Takes note of an evaluation."""
        self.first, self.last = self.first or row, row
        self.evaluations = evaluations

    def add_iteration(self, metrics: dict[str, Any]) -> None:
        """Takes its counts from the metrics of an iteration."""
        self.games += int(metrics["games"])
        self.eligible += int(metrics.pop("newly"))
        self.delay += float(metrics.pop("delay"))
        self.waiting = int(metrics.pop("waiting"))


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


class _Learning(NamedTuple):
    """The functions of a run, without arrays.

    config: the settings.
    algorithm: the jitted functions.
    player: makes a player from weights.
    rate: returns the learning rate at a share of the run, None if it is unknown.
    """

    config: TrainConfig
    algorithm: Algorithm
    player: Callable[[Variables], TrainedPlayer]
    rate: Callable[[float], float | None]


def train(
    config: TrainConfig,
    *,
    optimizer: optax.GradientTransformation | None = None,
    parts: Parts | None = None,
    loss: Loss | None = None,
    value_target: ValueTarget | None = None,
    sampler: Sampler | None = None,
    on_iteration: Callable[[Mapping[str, Any]], None] | None = None,
    on_evaluation: Callable[[Mapping[str, Any]], None] | None = None,
) -> Run:
    """Learns a game by self-play, or continues a run that was stopped.

    SIGINT and SIGTERM end the run after the iteration in progress; it is saved then. A
    second one ends it at once. A run continues only with the same optimizer. Whether
    `loss`, `value_target` and `sampler` are given must be the same, too; what they
    compute is not compared.

    Args:
        config: the run's settings.
        optimizer: in place of AdamW with its schedule.
        parts: modules of the user's own in the network, and auxiliary heads.
        loss: in place of `head_losses`, `(prediction, batch)` to the losses by name.
        value_target: in place of `lambda_target`.
        sampler: in place of `uniform_sampler`.
        on_iteration: called with the metrics of each iteration. What it raises ends
            the run as it was saved last; a signal ends it with everything saved.
        on_evaluation: called with each evaluation, once its plot is drawn.

    Raises:
        ValueError: the run directory holds another run, no checkpoint in it can be
            read, an opponent to be evaluated against is unknown, the initial player is
            for another game or has another network, a hook returns something of the
            wrong shape, a loss is not finite, or the run cannot fit into the device's
            memory.
        OSError: the run directory cannot be written.
    """
    started = time.monotonic()
    enable_compilation_cache()
    game = game_register.make(config.game)
    network, variables = first_network(config.seed, game, config.network, parts)
    if config.initial_player is not None and not has_begun(config.directory):
        variables = initial_variables(config, game, parts)
    algorithm = make_algorithm(
        config,
        game,
        network,
        optimizer=optimizer,
        parts=parts,
        loss=loss,
        value_target=value_target,
        sampler=sampler,
    )

    def player(variables: Variables) -> TrainedPlayer:
        return TrainedPlayer(
            game=game,
            network=network,
            variables=variables,
            config=config.network,
            search=config.search,
            seed=config.seed,
            has_own_parts=parts is not None,
        )

    def rate(share: float) -> float | None:
        return float(learning_rate(config.learner, share)) if not optimizer else None

    evaluator = Evaluator(game, config)
    needed = required_parts(
        config,
        game,
        network,
        variables,
        lambda: algorithm.init(variables),
        parts=parts,
        loss=loss,
    )
    check_memory(config, needed)
    notes: list[str] = []
    identity = optimizer_identity(optimizer, variables.params) if optimizer else DEFAULT
    hooks = {"loss": loss, "value_target": value_target, "sampler": sampler}
    given = [name for name, hook in hooks.items() if hook is not None]
    with (
        open_run_directory(config, identity, notes.append, hooks=given) as directory,
        memory_errors(config, needed),
    ):
        return _train(
            _Learning(config, algorithm, player, rate),
            variables,
            directory,
            notes=notes,
            evaluator=evaluator,
            started=started,
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        )


def _train(
    learning: _Learning,
    variables: Variables,
    directory: Path,
    *,
    notes: list[str],
    evaluator: Evaluator,
    started: float,
    on_iteration: Callable[[Mapping[str, Any]], None] | None,
    on_evaluation: Callable[[Mapping[str, Any]], None] | None,
) -> Run:
    """Does what `train` does, in a directory that is its own."""
    from azjax.training.checkpoints import Checkpoints

    config = learning.config
    checkpoints = Checkpoints(
        directory / CHECKPOINTS, keep=config.checkpoint.keep, version=STATE_VERSION
    )
    restored = checkpoints.restore(_shapes(learning, variables), notes.append)
    state, progress, start = _begin(learning, variables, restored, notes)
    reporter = Reporter(directory, config, start)
    started -= progress.seconds  # as if all sessions had been one

    def save(state: TrainState, *, evaluated: bool) -> None:
        progress.seconds = time.monotonic() - started
        mistakes = (progress.last or {}).get("network_mistakes") if evaluated else None
        values = {"iteration": int(state.iteration), **dataclasses.asdict(progress)}
        checkpoints.save(state, values, mistakes=mistakes)
        with disk_errors(directory):
            save_player(directory / "player", learning.player(state.learner.averaged))

    signals = StopSignals(reporter.message, reporter.leave)
    with reporter, signals, checkpoints:
        for note in notes:
            reporter.message(note)
        saved_at = time.monotonic()
        while True:
            iteration = int(state.iteration)
            progress.seconds = time.monotonic() - started
            share = _share(config, iteration, progress.seconds)
            finished = share >= 1
            times = config.evaluation.num_evaluations
            evaluated = progress.is_evaluation_due(share, times, iteration)
            if evaluated:
                reporter.compiling("evaluation")
                row = evaluator.evaluate(learning.player(state.learner.averaged))
                row |= _counts(config, state, progress)
                progress.add_evaluation(row, int(share * times))
                reporter.evaluation(row)
                if on_evaluation is not None:
                    on_evaluation(row)
            if finished or signals.stopping:
                break
            minutes = (time.monotonic() - saved_at) / 60
            if evaluated or minutes > config.checkpoint.every_minutes:
                save(state, evaluated=evaluated)
                saved_at = time.monotonic()
            state, row = _iterate(learning, state, progress, share, reporter)
            reporter.iteration(row)
            if on_iteration is not None:
                on_iteration(row)
        save(state, evaluated=evaluated)
        checkpoints.wait()
        if not finished:
            time_left = _time_left(config, progress)
            reporter.last_message(
                f"stopped after iteration {iteration}{time_left}; saved in "
                f"{directory}; the same command goes on from there"
            )
    player = learning.player(state.learner.averaged)
    return Run(directory, player, finished, progress.first, progress.last)


def _shapes(learning: _Learning, variables: Variables) -> Any:
    """Returns the shapes and the placement of a state, which is not computed."""
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=device),
        jax.eval_shape(learning.algorithm.init, variables),
    )


def _begin(
    learning: _Learning,
    variables: Variables,
    restored: tuple[TrainState, dict[str, Any]] | None,
    notes: list[str],
) -> tuple[TrainState, Progress, dict[str, Any] | None]:
    """Returns the state, the progress and the values of a checkpoint; without one,
    those of a new run and None."""
    config = learning.config
    if restored is None:
        return learning.algorithm.init(variables), Progress(), None
    state, values = restored
    counted = {name: value for name, value in values.items() if name != "iteration"}
    progress = Progress(**counted)
    progress.first = progress.first and with_scores(progress.first)
    progress.last = progress.last and with_scores(progress.last)
    is_over = _share(config, values["iteration"], progress.seconds) >= 1
    doing = "finished" if is_over else "going on"
    notes.append(f"{doing} after iteration {values['iteration']} in {config.directory}")
    return state, progress, values


def _iterate(
    learning: _Learning,
    state: TrainState,
    progress: Progress,
    share: float,
    reporter: Reporter,
) -> tuple[TrainState, dict[str, Any]]:
    """Does an iteration; donates the state. Returns also its row of the metrics."""
    config = learning.config
    phases_began = []  # self-play, and the update if there is one

    def enter(phase: str) -> None:
        phases_began.append(time.monotonic())
        reporter.compiling(phase)

    state, metrics = train_iteration(learning.algorithm, config, state, share, enter)
    end = time.monotonic()
    began, updates_began, *_ = (*phases_began, end)
    progress.add_iteration(metrics)
    progress.seconds += end - began
    row = {"policy_loss": None, "value_loss": None, "gradient_norm": None}
    _check_finite(metrics, int(state.iteration), config.directory)
    row |= {name: value.item() for name, value in metrics.items() if name != "games"}
    return state, {
        **_counts(config, state, progress),
        "positions_per_second": config.chunk_positions / (end - began),
        **row,
        "learning_rate": learning.rate(share),
        "self_play_seconds": updates_began - began,
        "update_seconds": end - updates_began,
    }


def _check_finite(metrics: Mapping[str, Any], iteration: int, directory: Path) -> None:
    for name, value in metrics.items():
        if name.endswith("_loss") and not np.isfinite(value):
            raise ValueError(
                f"{name} is {value} in iteration {iteration}: the run is stopped, and "
                f"what was saved in {directory} before is whole; try a lower "
                "learner.learning_rate, and check losses and targets of your own"
            )


def _share(config: TrainConfig, iteration: int, seconds: float) -> float:
    """Returns the share of the run that is over, in [0, 1]."""
    lengths = (iteration, config.iterations), (seconds / 60, config.minutes)
    return min(1.0, *(done / length for done, length in lengths if length))


def _counts(
    config: TrainConfig, state: TrainState, progress: Progress
) -> dict[str, Any]:
    """Returns what every row of the metrics begins with."""
    positions = int(state.iteration) * config.chunk_positions
    decided = positions - progress.waiting
    eligible = progress.eligible
    return {
        "iteration": int(state.iteration),
        "seconds": progress.seconds,
        "positions": positions,
        "games": progress.games,
        "updates": int(state.learner.updates),
        "eligible_share": eligible / decided if decided else None,
        "eligibility_delay": progress.delay / eligible if eligible else None,
    }


def _time_left(config: TrainConfig, progress: Progress) -> str:
    if config.minutes is None:
        return ""
    seconds = max(0.0, 60 * config.minutes - progress.seconds)
    return f", with {duration(seconds)} left"
