"""The host loop of a run: when to evaluate, to save and to stop."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import jax

from azjax.arena import Poll
from azjax.checks import check_int, is_number, quoted
from azjax.remote import Directory
from azjax.training import clock
from azjax.training.clock import Moment
from azjax.training.distributed import (
    broadcast_from_first_process,
    is_first_process,
    raise_on_all_processes,
    raise_save_error_on_all_processes,
)
from azjax.training.kept_games import KeptGames
from azjax.training.lanes import abstract_state
from azjax.training.metrics import MAX_NUMBER, Row, as_evaluation, check_finite
from azjax.training.plan import (
    PLAN_FILE,
    Plan,
    extended_plan,
    new_plan,
    plan_from_json,
    write_plan,
)
from azjax.training.planner import Planner
from azjax.training.reporting import Reporter, SilentReporter, duration
from azjax.training.run_config import RunConfig
from azjax.training.run_directory import (
    CHECKPOINTS,
    check_still_there,
    disk_errors,
    run_id,
)
from azjax.training.signals import StopSignals
from azjax.training.stops import StopRequests
from azjax.training.working_directory import WorkingDirectory, working_directory

if TYPE_CHECKING:
    from azjax.training.checkpoints import Checkpoints

PLAYER = "player"
_FEWEST = 20  # iterations; a run of minutes with fewer gives a warning at its end
COUNTED = ("games", "eligible", "delay", "waiting")  # totals that are numbers


class HasIteration(Protocol):
    """The complete training state, a pytree of arrays."""

    @property
    def iteration(self) -> jax.Array:
        """`[]` int32; completed iterations."""
        ...


State = TypeVar("State", bound=HasIteration)
Player = TypeVar("Player")
Hook = Callable[[Row], None]
Totals = Mapping[str, Any]  # JSON values


class RunFunctions(NamedTuple, Generic[State, Player]):
    """The functions of a learning algorithm that the host loop calls.

    config: the run's settings.
    state_version: version of the state's layout; checkpoints of others are refused.
    positions: positions played in an iteration.
    init: returns the initial state.
    shardings: maps the shapes of a state to the sharding of each leaf.
    iterate: `(state, totals, share, enter) -> (state, totals, metrics)`; donates the
        state. `totals` are sums over the run, initially empty, stored in checkpoints;
        `share` is the fraction of the run that is done, in [0, 1]; it calls `enter`
        with the name of each phase when the phase begins.
    counters: `(state, totals) -> row`, the first fields of each metrics row; it has
        `games` and `updates`.
    player: returns the player of a state.
    evaluate: `(player, poll) -> row`, the strength of a player. It calls `poll`
        regularly; an exception of `poll` ends the evaluation.
    save_player: `(directory, player)`; writes the player.
    iteration_seconds: `(row, share)` to the predicted seconds of an iteration at that
        fraction of the run, given the metrics of another iteration.
    kept: writes the games of self-play; None if the algorithm does not keep them.
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
    counters: Callable[[State, Totals], dict[str, Any]]
    player: Callable[[State], Player]
    evaluate: Callable[[Player, Poll], dict[str, Any]]
    save_player: Callable[[Path, Player], None]
    iteration_seconds: Callable[[Row, float], float]
    kept: KeptGames | None = None


@dataclasses.dataclass(frozen=True)
class Run(Generic[Player]):
    """The result of training.

    directory: the run directory.
    player: the trained player.
    finished: whether the run reached its end; a stopped run can be continued.
    updates: of the network in the whole run; with 0 nothing was learned.
    first: the evaluation of the initial network.
    last: the newest evaluation.
    """

    directory: Directory
    player: Player = dataclasses.field(repr=False)
    finished: bool
    updates: int
    first: dict[str, Any] | None = dataclasses.field(repr=False)
    last: dict[str, Any] | None = dataclasses.field(repr=False)


@dataclasses.dataclass
class Progress:
    """The host's counters over all segments of a run.

    plan: fraction of the run that is done after each iteration.
    seconds: time used, without compilation.
    evaluations: number of evaluations, without that of the initial network.
    first: evaluation of the initial network.
    last: newest evaluation.
    totals: the algorithm's sums over the run.
    """

    plan: Plan
    seconds: float = 0.0
    evaluations: int = 0
    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    totals: Totals = dataclasses.field(default_factory=dict)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Progress":
        """Returns the progress from the result of `values`, of any origin.

        Raises:
            ValueError: no run saves such values.
        """
        totals = dict(values)
        own = {
            field.name: totals.pop(field.name, None)
            for field in dataclasses.fields(cls)
            if field.name != "totals"
        }
        own["plan"] = plan_from_json(own["plan"])
        numbers = {name: own[name] for name in ("seconds", "evaluations")}
        numbers |= {name: totals[name] for name in totals.keys() & set(COUNTED)}
        for name, value in numbers.items():
            if not (is_number(value) and 0 <= value <= MAX_NUMBER):
                raise ValueError(f"{name} is {quoted(value, 40)}")
        for name in ("first", "last"):
            if own[name] is None:
                continue
            own[name] = as_evaluation(own[name])
            if own[name] is None:
                raise ValueError(f"{name} is not an evaluation")
        return cls(**own, totals=totals)

    def values(self) -> dict[str, Any]:
        """Returns the progress as JSON values."""
        fields = dataclasses.fields(self)
        values = {field.name: getattr(self, field.name) for field in fields}
        totals = values.pop("totals")
        return {**values, **totals, "plan": self.plan.to_json()}

    def is_evaluation_due(
        self, share: float, due: float, next_evaluation: float, iteration: int
    ) -> bool:
        """Returns whether to evaluate: before the first iteration, when `due`
        evaluations of the run reach `next_evaluation`, and at its end, but not again
        when a finished run is restarted."""
        if self.first is None or due >= next_evaluation:
            return True
        return share >= 1 and (self.last or {}).get("iteration") != iteration


def length_of(config: RunConfig) -> tuple[str, float]:
    """Returns the unit of a run's length, `minutes` or `iterations`, and the number."""
    if config.minutes is not None:
        return "minutes", config.minutes
    assert config.iterations is not None
    return "iterations", config.iterations


def run_loop(
    functions: RunFunctions[State, Player],
    directory: Directory,
    *,
    notes: Sequence[str],
    started: Moment,
    plan: Plan | None = None,
    on_iteration: Hook | None = None,
    on_evaluation: Hook | None = None,
) -> Run[Player]:
    """Iterates until the run ends or a signal stops it.

    Args:
        functions: of the learning algorithm.
        directory: the open run directory.
        notes: lines to print at the start.
        started: when the preparation of this segment began.
        plan: plan to follow in a new run; None: a new plan.
        on_iteration: called with the metrics of each iteration.
        on_evaluation: called with the metrics of each evaluation, after plotting.
    """
    from azjax.training.checkpoints import Checkpoints

    config, notes = functions.config, list(notes)
    with raise_on_all_processes():
        run = run_id(directory) if is_first_process() else ""
    run = broadcast_from_first_process(run)
    checkpoints = Checkpoints(
        directory / CHECKPOINTS,
        keep=config.checkpoint.keep,
        version=functions.state_version,
        run=run,
    )
    restored = checkpoints.restore(
        abstract_state(functions.init, functions.shardings), notes.append
    )
    state, progress, start = _begin(functions, restored, plan, notes)
    with contextlib.ExitStack() as stack:
        with raise_on_all_processes():
            opened = working_directory(directory)
            files = stack.enter_context(opened) if is_first_process() else None
        if functions.kept is not None:
            iteration = int(state.iteration)
            stack.enter_context(functions.kept.opened(directory, run, iteration))
        reporter = Reporter(files, config, start) if files else SilentReporter()
        signals = StopSignals(reporter.message, reporter.leave)
        for context in (reporter, signals, checkpoints):
            stack.enter_context(context)
        for note in notes:
            reporter.message(note)
        before, trained = int(state.iteration), progress.seconds
        segment = _Segment(
            functions,
            directory,
            run,
            files,
            checkpoints,
            progress,
            Planner(
                config.minutes,
                config.evaluation.num_evaluations,
                functions.positions,
                functions.iteration_seconds,
            ),
            reporter,
            clock.now().seconds - trained,  # includes earlier segments
            on_iteration or (lambda row: None),
            on_evaluation or (lambda row: None),
        )
        state, finished = _run_to_end(segment, StopRequests(signals), state)
        checkpoints.wait()
        iteration = int(state.iteration)
        updates = functions.counters(state, progress.totals)["updates"]
        lines = []
        if iteration > before:
            used, trained = clock.now().since(started), progress.seconds - trained
            lines.append(
                f"it took {duration(sum(used))}: {duration(trained)} of training, "
                f"{duration(used.compiling)} of compilation, "
                f"{duration(used.seconds - trained)} of preparation"
            )
        lines += _closing(segment, iteration, updates, finished=finished)
        if lines:
            reporter.last_message("\n".join(lines))
    player = functions.player(state)
    return Run(directory, player, finished, updates, progress.first, progress.last)


class _Segment(NamedTuple):
    """The host objects of a segment; `progress` and `planner` are mutable.

    `files` is None in a process that writes only its part of the checkpoints.
    """

    functions: RunFunctions
    directory: Directory
    run: str
    files: WorkingDirectory | None
    checkpoints: "Checkpoints"
    progress: Progress
    planner: Planner
    reporter: Reporter | SilentReporter
    started: float
    on_iteration: Hook
    on_evaluation: Hook


def _closing(
    segment: _Segment, iteration: int, updates: int, *, finished: bool
) -> Iterator[str]:
    """Yields a line about the end of a segment, unless all is as it should be."""
    functions, directory = segment.functions, segment.functions.config.directory
    unit, length = length_of(functions.config)
    if not finished:
        left = ""
        if unit == "minutes":
            seconds = max(0.0, 60 * length - segment.progress.seconds)
            left = f", with {duration(seconds)} left"
        yield (
            f"stopped after iteration {iteration}{left}; saved in {directory}; the "
            "same command continues it"
        )
    elif not updates:
        yield (
            f"nothing was learned: no update was made in {iteration:,} iterations; "
            f"the same command with more --{unit} continues"
        )
    elif unit == "minutes" and iteration < _FEWEST:
        yield (
            f"only {iteration} iterations, too few to learn much: give more --minutes, "
            f"or smaller chunks of self-play than {functions.positions:,} positions"
        )


def _run_to_end(segment: _Segment, stops: StopRequests, state: Any) -> tuple[Any, bool]:
    """Iterates, evaluates and saves; donates the state. Returns the last state, and
    whether the run is finished."""
    config, progress = segment.functions.config, segment.progress
    saved_at = progress.seconds
    while True:
        iteration = int(state.iteration)
        share, next_evaluation = _replanned_share(segment, state)
        num_evaluations = config.evaluation.num_evaluations
        due = share * num_evaluations
        evaluates = progress.is_evaluation_due(share, due, next_evaluation, iteration)
        if evaluates:
            row = _evaluate(segment, stops, state)
            if row is None:
                _save(segment, state, evaluated=False)
                return state, False
            progress.first, progress.last = progress.first or row, row
            progress.evaluations = int(share * num_evaluations)
            segment.reporter.evaluation(row)
            segment.on_evaluation(row)
            share, _ = _replanned_share(segment, state, has_evaluated=True)
        if share >= 1 or stops.is_requested():
            _save(segment, state, evaluated=evaluates)
            return state, share >= 1
        minutes = (progress.seconds - saved_at) / 60
        if evaluates or minutes > config.checkpoint.every_minutes:
            saved_at = progress.seconds
            _save(segment, state, evaluated=evaluates)
        if iteration == 0:
            segment = segment._replace(started=clock.now().seconds)
        state, row = _iterate(segment, state, share)
        segment.reporter.iteration(row)
        segment.on_iteration(row)


def _replanned_share(
    segment: _Segment, state: Any, *, has_evaluated: bool = False
) -> tuple[float, float]:
    """Updates the plan by the first process's clock. Returns the fraction of the run
    that is done, and when the next evaluation is due; see `Planner.next_evaluation`."""
    progress, planner = segment.progress, segment.planner
    iteration = int(state.iteration)
    seconds = _seconds(segment, iteration)
    if has_evaluated:
        planner.add_evaluation(seconds - progress.seconds)
    plan = planner.replanned(
        progress.plan,
        iteration,
        seconds,
        progress.evaluations,
        updates=segment.functions.counters(state, progress.totals)["updates"],
        has_evaluated=has_evaluated,
    )
    next_evaluation = planner.next_evaluation(progress.evaluations)
    progress.seconds, content, next_evaluation = broadcast_from_first_process(
        [seconds, plan.to_json(), next_evaluation]
    )
    progress.plan = plan if is_first_process() else plan_from_json(content)
    for text in planner.news():
        segment.reporter.message(text)
    return progress.plan.share(iteration), next_evaluation


def _seconds(segment: _Segment, iteration: int) -> float:
    """Returns the time of the run, which starts with its first iteration: evaluation
    and saving of the initial network overlap with compilation."""
    return clock.now().seconds - segment.started if iteration else 0.0


def _evaluate(
    segment: _Segment, stops: StopRequests, state: Any
) -> dict[str, Any] | None:
    """Returns the metrics of an evaluation; None if a stop request interrupted it."""
    segment.reporter.compiling("evaluation")
    player = segment.functions.player(state)
    row = stops.interrupting(functools.partial(segment.functions.evaluate, player))
    # The result may differ between processes: other hardware, engines as opponents.
    row = broadcast_from_first_process(row)
    return None if row is None else row | _counters(segment, state)


def _save(segment: _Segment, state: Any, *, evaluated: bool) -> None:
    """Saves a checkpoint and the player.

    `evaluated`: whether the last evaluation is of this state; its mistakes then select
        the best checkpoint.
    """
    functions, progress = segment.functions, segment.progress
    progress.seconds = _seconds(segment, int(state.iteration))
    mistakes = (progress.last or {}).get("network_mistakes") if evaluated else None
    values = {"iteration": int(state.iteration), **progress.values()}
    with raise_save_error_on_all_processes():
        if is_first_process():
            check_still_there(segment.directory, segment.run)
        segment.reporter.publish()  # first, so that the metrics include the checkpoint
        # First too: a run continues after its checkpoint.
        if functions.kept is not None and (text := functions.kept.flush()):
            segment.reporter.message(text)
        # A checkpoint of this iteration exists if its evaluation was interrupted.
        segment.checkpoints.save(state, values, mistakes=mistakes, replaces=evaluated)
        if segment.files is not None:
            with disk_errors(segment.files.path):
                player = functions.player(state)
                functions.save_player(segment.files.path / PLAYER, player)
                write_plan(segment.files.path, progress.plan)
            with disk_errors(segment.directory):
                segment.files.publish(PLAYER, PLAN_FILE)


def _iterate(segment: _Segment, state: Any, share: float) -> tuple[Any, dict[str, Any]]:
    """Runs an iteration; donates the state. Returns the new state and its metrics."""
    functions, progress = segment.functions, segment.progress
    began = clock.now()
    state, totals, metrics = functions.iterate(
        state, progress.totals, share, segment.reporter.compiling
    )
    seconds = clock.now().since(began).seconds
    check_finite(metrics, int(state.iteration), segment.directory)
    progress.totals = totals
    progress.seconds = _seconds(segment, int(state.iteration))
    speed = functions.positions / seconds
    row = {**_counters(segment, state), "positions_per_second": speed, **metrics}
    segment.planner.add_iteration(row)
    return state, row


def _counters(segment: _Segment, state: Any) -> dict[str, Any]:
    """Returns the first fields of every metrics row."""
    functions, progress = segment.functions, segment.progress
    iteration = int(state.iteration)
    return {
        "iteration": iteration,
        "seconds": progress.seconds,
        "positions": iteration * functions.positions,
        **functions.counters(state, progress.totals),
    }


def _begin(
    functions: RunFunctions[State, Player],
    restored: tuple[State, dict[str, Any]] | None,
    plan: Plan | None,
    notes: list[str],
) -> tuple[State, Progress, dict[str, Any] | None]:
    """Returns state, progress and values of a checkpoint; without one, a new state, new
    progress and None."""
    config, length = functions.config, length_of(functions.config)
    if restored is None:
        return functions.init(), Progress(plan or new_plan(length)), None
    state, values = restored
    rest = dict(values)
    iteration = rest.pop("iteration")
    try:
        check_int("iteration", iteration, 0)
        progress = Progress.from_values(rest)
    except ValueError as error:
        raise ValueError(
            f"the progress of the newest checkpoint in {config.directory} is none of a "
            f"run: {error}"
        ) from None
    share, number = progress.plan.share(iteration), config.evaluation.num_evaluations
    is_over = share >= 1 and length == progress.plan.length
    is_over = is_over and not progress.is_evaluation_due(
        share, share * number, progress.evaluations + 1, iteration
    )
    doing = "finished" if is_over else "continuing"
    notes.append(f"{doing} after iteration {iteration} in {config.directory}")
    if length != (old := progress.plan.length):
        progress.plan = extended_plan(
            progress.plan, length, iteration, progress.seconds
        )
        before, share = share, progress.plan.share(iteration)
        progress.evaluations = int(share * number)
        lengths = " to ".join(f"{count:g} {unit}" for unit, count in (old, length))
        notes.append(
            f"the length of the run changes from {lengths}: {share:.0%} of it is done "
            f"instead of {before:.0%}; schedules continue from there, the learning "
            "rate with a new cosine"
        )
    return state, progress, values
