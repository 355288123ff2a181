"""The host's part of a run: when to evaluate, to save and to stop."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from azjax.arena import Poll
from azjax.remote import Directory
from azjax.training.distributed import (
    fails_together,
    fails_together_at_once,
    from_first,
    is_first,
)
from azjax.training.lanes import abstract_state
from azjax.training.metrics import Row, losses
from azjax.training.plan import (
    PLAN_FILE,
    Plan,
    extended_plan,
    new_plan,
    plan_from_json,
    write_plan,
)
from azjax.training.planner import Planner, plan_text
from azjax.training.progress import Progress, Totals
from azjax.training.reporting import Reporter, SilentReporter, duration
from azjax.training.run_directory import CHECKPOINTS, RunConfig, disk_errors
from azjax.training.signals import StopSignals
from azjax.training.stops import StopRequests
from azjax.training.working_directory import WorkingDirectory, working_directory

if TYPE_CHECKING:
    from azjax.training.checkpoints import Checkpoints

PLAYER = "player"


class HasIteration(Protocol):
    """The complete state of a run, a pytree of arrays."""

    @property
    def iteration(self) -> jax.Array:
        """`[]` int32; iterations done."""
        ...


State = TypeVar("State", bound=HasIteration)
Player = TypeVar("Player")
Hook = Callable[[Row], None]


class Learning(NamedTuple, Generic[State, Player]):
    """An algorithm, as the host loop calls it.

    config: the settings.
    state_version: of the layout of the state; other checkpoints are refused.
    positions: played in an iteration.
    init: returns the state before the first iteration.
    shardings: of the shapes of a state to the sharding of each leaf.
    iterate: `(state, totals, share, enter) -> (state, totals, metrics)`. Donates the
        state. `totals` are sums over the run, empty at its start, which checkpoints
        hold; `share` is the share of the run that is over, in [0, 1]; `enter` is to be
        called with each phase when it begins.
    counts: `(state, totals) -> row`, what all rows of the metrics begin with, `games`
        and `updates` among it.
    player: returns the player that a state holds.
    evaluate: `(player, poll) -> row`, how well it plays. `poll` is called now and then;
        an error that it raises ends the evaluation.
    save_player: `(directory, player)`; writes the player.
    iteration_seconds: `(row, share)` to the seconds that an iteration takes at that
        share of the run, as the row of another one lets expect.
    """

    config: RunConfig
    state_version: int
    positions: int
    init: Callable[[], State]
    shardings: Callable[[Any], Any]
    iterate: Callable[
        [State, Totals, float, Callable[[str], None]],
        tuple[State, Totals, dict[str, Any]],
    ]
    counts: Callable[[State, Totals], dict[str, Any]]
    player: Callable[[State], Player]
    evaluate: Callable[[Player, Poll], dict[str, Any]]
    save_player: Callable[[Path, Player], None]
    iteration_seconds: Callable[[Row, float], float]


@dataclasses.dataclass(frozen=True)
class Run(Generic[Player]):
    """What training leaves.

    directory: the run's.
    player: what was learnt.
    finished: whether the run came to its end, or was stopped and can go on.
    first: the evaluation of the first network.
    last: the newest evaluation.
    """

    directory: Directory
    player: Player
    finished: bool
    first: dict[str, Any] | None
    last: dict[str, Any] | None


def length_of(config: RunConfig) -> tuple[str, float]:
    """Returns the unit of a run's length, `minutes` or `iterations`, and how many."""
    if config.minutes is not None:
        return "minutes", config.minutes
    assert config.iterations is not None
    return "iterations", config.iterations


def run_loop(
    learning: Learning[State, Player],
    directory: Directory,
    *,
    notes: Sequence[str],
    started: float,
    plan: Plan | None = None,
    on_iteration: Hook | None = None,
    on_evaluation: Hook | None = None,
) -> Run[Player]:
    """Iterates to the end of the run, or until a signal stops it.

    Args:
        learning: the algorithm.
        directory: the run's, open.
        notes: lines to show at the start.
        started: when this session began, as `time.monotonic` counts.
        plan: that a new run follows; None makes one.
        on_iteration: called with the metrics of each iteration.
        on_evaluation: called with each evaluation, once its plot is drawn.
    """
    from azjax.training.checkpoints import Checkpoints

    config = learning.config
    checkpoints = Checkpoints(
        directory / CHECKPOINTS,
        keep=config.checkpoint.keep,
        version=learning.state_version,
    )
    notes = list(notes)
    restored = checkpoints.restore(
        abstract_state(learning.init, learning.shardings), notes.append
    )
    state, progress, start = _begin(learning, restored, plan, notes)
    with contextlib.ExitStack() as stack:
        with fails_together():
            opened = working_directory(directory)
            files = stack.enter_context(opened) if is_first() else None
        reporter = Reporter(files, config, start) if files else SilentReporter()
        session = _Session(
            learning,
            directory,
            files,
            checkpoints,
            progress,
            Planner(
                config.minutes,
                config.evaluation.num_evaluations,
                learning.iteration_seconds,
            ),
            reporter,
            started - progress.seconds,  # as if all sessions had been one
            on_iteration or _ignore,
            on_evaluation or _ignore,
        )
        signals = StopSignals(reporter.message, reporter.leave)
        for context in (reporter, signals, checkpoints):
            stack.enter_context(context)
        for note in notes:
            reporter.message(note)
        state, finished = _run_to_end(session, StopRequests(signals), state)
        checkpoints.wait()
        if not finished:
            iteration = int(state.iteration)
            reporter.last_message(_stopped_text(config, progress, iteration))
    player = learning.player(state)
    return Run(directory, player, finished, progress.first, progress.last)


class _Session(NamedTuple):
    """What a run has at hand on the host; `progress` and `planner` change. `files` is
    None in a process that writes checkpoints alone."""

    learning: Learning
    directory: Directory
    files: WorkingDirectory | None
    checkpoints: "Checkpoints"
    progress: Progress
    planner: Planner
    reporter: Reporter | SilentReporter
    started: float
    on_iteration: Hook
    on_evaluation: Hook


def _ignore(row: Row) -> None:
    del row


def _run_to_end(session: _Session, stops: StopRequests, state: Any) -> tuple[Any, bool]:
    """Iterates, evaluates and saves. Returns the last state, and whether the run is
    finished; donates the first."""
    config, progress = session.learning.config, session.progress
    saved_at = progress.seconds
    while True:
        iteration = int(state.iteration)
        share = _replanned_share(session, iteration)
        num_evaluations = config.evaluation.num_evaluations
        evaluates = progress.is_evaluation_due(share, num_evaluations, iteration)
        if evaluates:
            row = _evaluate(session, stops, state)
            if row is None:
                _save(session, state, evaluated=False)
                return state, False
            progress.add_evaluation(row, int(share * num_evaluations))
            session.reporter.evaluation(row)
            session.on_evaluation(row)
            share = _replanned_share(session, iteration, has_evaluated=True)
        if share >= 1 or stops.is_requested():
            _save(session, state, evaluated=evaluates)
            return state, share >= 1
        minutes = (progress.seconds - saved_at) / 60
        if evaluates or minutes > config.checkpoint.every_minutes:
            saved_at = progress.seconds
            _save(session, state, evaluated=evaluates)
        state, row = _iterate(session, state, share)
        session.reporter.iteration(row)
        session.on_iteration(row)


def _replanned_share(
    session: _Session, iteration: int, *, has_evaluated: bool = False
) -> float:
    """Plans the rest of the run, by the clock of the first process. Returns the share
    of it that is over."""
    progress, planner, before = session.progress, session.planner, session.progress.plan
    seconds = time.monotonic() - session.started
    if has_evaluated:
        planner.add_evaluation(seconds - progress.seconds)
    plan = planner.replanned(before, iteration, seconds, has_evaluated=has_evaluated)
    progress.seconds, content = from_first([seconds, plan.to_json()])
    progress.plan = plan if is_first() else plan_from_json(content)
    if text := plan_text(before, progress.plan, session.learning.positions):
        session.reporter.message(text)
    return progress.plan.share(iteration)


def _evaluate(
    session: _Session, stops: StopRequests, state: Any
) -> dict[str, Any] | None:
    """Returns an evaluation, a row of the metrics; None if a stop interrupted it."""
    session.reporter.compiling("evaluation")
    player = session.learning.player(state)
    row = stops.interrupting(functools.partial(session.learning.evaluate, player))
    # The processes may have different hardware, or engines as opponents.
    row = from_first(row)
    return None if row is None else row | _counts(session, state)


def _save(session: _Session, state: Any, *, evaluated: bool) -> None:
    """Saves a checkpoint and the player. `evaluated`: whether the last evaluation is of
    this state; its mistakes then decide whether the checkpoint is kept as the best."""
    learning, progress = session.learning, session.progress
    progress.seconds = time.monotonic() - session.started
    mistakes = (progress.last or {}).get("network_mistakes") if evaluated else None
    values = {"iteration": int(state.iteration), **progress.values()}
    with fails_together_at_once():
        session.reporter.publish()  # first: the metrics are never behind a checkpoint
        session.checkpoints.save(state, values, mistakes=mistakes)
        if session.files is not None:
            with disk_errors(session.files.path):
                player = learning.player(state)
                learning.save_player(session.files.path / PLAYER, player)
                write_plan(session.files.path, progress.plan)
            with disk_errors(session.directory):
                session.files.publish(PLAYER, PLAN_FILE)


def _iterate(session: _Session, state: Any, share: float) -> tuple[Any, dict[str, Any]]:
    """Does an iteration; donates the state. Returns also its row of the metrics."""
    learning, progress = session.learning, session.progress

    def enter(phase: str) -> None:
        session.planner.enter(phase)
        session.reporter.compiling(phase)

    began = time.monotonic()
    state, totals, metrics = learning.iterate(state, progress.totals, share, enter)
    seconds = time.monotonic() - began
    _check_finite(metrics, int(state.iteration), session.directory)
    progress.totals = totals
    progress.seconds += seconds  # until the clock is read again
    speed = learning.positions / seconds
    row = {**_counts(session, state), "positions_per_second": speed, **metrics}
    session.planner.add_iteration(row)
    return state, row


def _counts(session: _Session, state: Any) -> dict[str, Any]:
    """Returns what every row of the metrics begins with."""
    learning, progress = session.learning, session.progress
    iteration = int(state.iteration)
    return {
        "iteration": iteration,
        "seconds": progress.seconds,
        "positions": iteration * learning.positions,
        **learning.counts(state, progress.totals),
    }


def _begin(
    learning: Learning[State, Player],
    restored: tuple[State, dict[str, Any]] | None,
    plan: Plan | None,
    notes: list[str],
) -> tuple[State, Progress, dict[str, Any] | None]:
    """Returns the state, the progress and the values of a checkpoint; without one,
    those of a new run and None."""
    config, length = learning.config, length_of(learning.config)
    if restored is None:
        return learning.init(), Progress(plan or new_plan(length)), None
    state, values = restored
    rest = dict(values)
    iteration = rest.pop("iteration")
    progress = Progress.from_values(rest)
    share, number = progress.plan.share(iteration), config.evaluation.num_evaluations
    is_over = share >= 1 and length == progress.plan.length
    is_over = is_over and not progress.is_evaluation_due(share, number, iteration)
    doing = "finished" if is_over else "going on"
    notes.append(f"{doing} after iteration {iteration} in {config.directory}")
    if length != progress.plan.length:
        notes.append(_change_length(progress, config, iteration))
    return state, progress, values


def _change_length(progress: Progress, config: RunConfig, iteration: int) -> str:
    """Gives the run the length of its settings, and returns what that means."""
    old, new = progress.plan.length, length_of(config)
    before = progress.plan.share(iteration)
    progress.plan = extended_plan(progress.plan, new, iteration, progress.seconds)
    share = progress.plan.share(iteration)
    progress.evaluations = int(share * config.evaluation.num_evaluations)
    lengths = " to ".join(f"{number:g} {unit}" for unit, number in (old, new))
    return (
        f"the length of the run is changed from {lengths}: {share:.0%} of it is over "
        f"in place of {before:.0%}, and its schedules go on from there, that of the "
        "learning rate with a new cosine"
    )


def _check_finite(metrics: Row, iteration: int, directory: Directory) -> None:
    for name, value in losses(metrics).items():
        if not np.isfinite(value):
            raise ValueError(
                f"{name}_loss is {value} in iteration {iteration}: the run is stopped, "
                f"and what was saved in {directory} before is whole; try a lower "
                "learning rate, and check losses and targets of your own"
            )


def _stopped_text(config: RunConfig, progress: Progress, iteration: int) -> str:
    left = ""
    if config.minutes is not None:
        seconds = max(0.0, 60 * config.minutes - progress.seconds)
        left = f", with {duration(seconds)} left"
    return (
        f"stopped after iteration {iteration}{left}; saved in {config.directory}; the "
        "same command goes on from there"
    )
