"""A run in progress: when to evaluate, to save and to stop."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from azjax.arena import Poll
from azjax.files import Directory
from azjax.settings import check_int, is_number
from azjax.text import quoted
from azjax.training.config import RunConfig
from azjax.training.lanes import abstract_state
from azjax.training.run import clock
from azjax.training.run.clock import Moment
from azjax.training.run.directory import (
    CHECKPOINTS,
    WorkingDirectory,
    check_still_there,
    disk_errors,
    run_id,
    working_directory,
)
from azjax.training.run.display import Reporter, SilentReporter, duration
from azjax.training.run.game_writer import GameWriter
from azjax.training.run.metrics import (
    MAX_NUMBER,
    Row,
    check_finite,
    graded,
    is_evaluation,
)
from azjax.training.run.processes import (
    StopRequests,
    broadcast_from_first_process,
    is_first_process,
    raise_on_all_processes,
    raise_save_error_on_all_processes,
)
from azjax.training.run.schedule import (
    SCHEDULE_FILE,
    Planner,
    Schedule,
    extended_schedule,
    new_schedule,
    schedule_from_json,
    write_schedule,
)
from azjax.training.run.signals import StopSignals

if TYPE_CHECKING:
    from azjax.training.run.checkpoints import Checkpoints

PLAYER = "player"
_FEWEST = 20  # iterations; a run of minutes with fewer gives a warning at its end
COUNTED = ("games", "eligible", "delay", "waiting")  # totals that are numbers

State = TypeVar("State")
Player = TypeVar("Player")
Hook = Callable[[Row], None]


class Task(Protocol[State, Player]):
    """What a run computes: AlphaZero or Q-learning.

    state_version: version of the state's layout; checkpoints of others are refused.
    positions: positions played in an iteration.
    totals: sums over the run, JSON values, stored in checkpoints; `step` updates them,
        and `open_run` sets them when a run continues.
    game_writer: writes the games of self-play; None if they are not stored.
    """

    state_version: int
    positions: int
    totals: dict[str, Any]
    game_writer: GameWriter | None

    @property
    def config(self) -> RunConfig:
        """The run's settings."""
        ...

    def init(self) -> State:
        """Returns the initial state, a pytree of arrays with an `iteration`, the `[]`
        int32 number of completed iterations."""
        ...

    def shardings(self, state: Any) -> Any:
        """Maps the shapes of a state to the sharding of each leaf."""
        ...

    def step(
        self, state: State, progress: float, enter: Callable[[str], None]
    ) -> tuple[State, dict[str, Any]]:
        """Makes an iteration. Returns the new state and metrics.

        Args:
            state: donated.
            progress: fraction of the run that is done, in [0, 1].
            enter: called with the name of each phase when it begins.
        """
        ...

    def counts(self, state: State) -> dict[str, Any]:
        """Returns the first fields of each metrics row, among them `games` and
        `updates`."""
        ...

    def player(self, state: State) -> Player:
        """Returns the player of a state."""
        ...

    def evaluate(self, player: Player, poll: Poll) -> dict[str, Any]:
        """Returns the strength of a player. It calls `poll` regularly; an exception of
        `poll` ends the evaluation."""
        ...

    def save_player(self, directory: Path, player: Player) -> None:
        """Writes the player."""
        ...

    def iteration_seconds(self, row: Row, progress: float) -> float:
        """Predicts the seconds of an iteration at a fraction of the run from the
        metrics of another iteration."""
        ...


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
class Counters:
    """The host's counters over all segments of a run.

    schedule: fraction of the run that is done after each iteration.
    seconds: time used, without compilation.
    evaluations: number of evaluations, without that of the initial network.
    first: evaluation of the initial network.
    last: newest evaluation.
    """

    schedule: Schedule
    seconds: float = 0.0
    evaluations: int = 0
    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None

    @classmethod
    def from_values(
        cls, values: Mapping[str, Any]
    ) -> tuple["Counters", dict[str, Any]]:
        """Returns the counters and the totals of the task from the result of `values`,
        of any origin.

        Raises:
            ValueError: no run saves such values.
        """
        totals = dict(values)
        own = {
            field.name: totals.pop(field.name, None)
            for field in dataclasses.fields(cls)
        }
        own["schedule"] = schedule_from_json(own["schedule"])
        numbers = {name: own[name] for name in ("seconds", "evaluations")}
        numbers |= {name: totals[name] for name in totals.keys() & set(COUNTED)}
        for name, value in numbers.items():
            if not (is_number(value) and 0 <= value <= MAX_NUMBER):
                raise ValueError(f"{name} is {quoted(value, 40)}")
        for name in ("first", "last"):
            if own[name] is not None and not is_evaluation(own[name]):
                raise ValueError(f"{name} is not an evaluation")
        return cls(**own), totals

    def values(self, totals: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the counters and totals as JSON values."""
        fields = dataclasses.fields(self)
        own = {field.name: getattr(self, field.name) for field in fields}
        return {**own, **totals, "schedule": self.schedule.to_json()}

    def is_evaluation_due(
        self, progress: float, due: float, next_evaluation: float, iteration: int
    ) -> bool:
        """Returns whether to evaluate: before the first iteration, when `due`
        evaluations of the run reach `next_evaluation`, and at its end, but not again
        when a finished run is restarted."""
        if self.first is None or due >= next_evaluation:
            return True
        return progress >= 1 and (self.last or {}).get("iteration") != iteration


def length_of(config: RunConfig) -> tuple[str, float]:
    """Returns the unit of a run's length, `minutes` or `iterations`, and the number."""
    if config.minutes is not None:
        return "minutes", config.minutes
    assert config.iterations is not None
    return "iterations", config.iterations


@contextlib.contextmanager
def open_run(
    task: Task[State, Player],
    directory: Directory,
    *,
    notes: Sequence[str],
    started: Moment,
    schedule: Schedule | None = None,
    on_iteration: Hook | None = None,
    on_evaluation: Hook | None = None,
) -> Iterator["OpenRun[State, Player]"]:
    """A context in which a run iterates: from its newest checkpoint, if there is one,
    with its display, stored games and signal handlers.

    Args:
        task: the learning algorithm.
        directory: the open run directory.
        notes: lines to print at the start.
        started: when the preparation of this segment began.
        schedule: schedule to follow in a new run; None: a new schedule.
        on_iteration: called with the metrics of each iteration.
        on_evaluation: called with the metrics of each evaluation, after plotting.
    """
    from azjax.training.run.checkpoints import Checkpoints

    config, notes = task.config, list(notes)
    length, number = length_of(config), config.evaluation.num_evaluations

    # Restore the newest checkpoint, or begin.
    with raise_on_all_processes():
        own_id = run_id(directory) if is_first_process() else ""
    own_id = broadcast_from_first_process(own_id)
    checkpoints = Checkpoints(
        directory / CHECKPOINTS,
        keep=config.checkpoint.keep,
        version=task.state_version,
        run=own_id,
    )
    found = checkpoints.restore(abstract_state(task.init, task.shardings), notes.append)
    state: Any
    state, restored = found or (task.init(), None)
    before = int(state.iteration)
    if restored is None:
        counters = Counters(schedule or new_schedule(length))
    else:
        values = dict(restored)
        try:
            check_int("iteration", values.pop("iteration"), 0)
            counters, task.totals = Counters.from_values(values)
        except ValueError as error:
            raise ValueError(
                f"the values of the newest checkpoint in {config.directory} are none "
                f"of a run: {error}"
            ) from None
        old, progress = counters.schedule.length, counters.schedule.progress(before)
        is_due = counters.is_evaluation_due(
            progress, progress * number, counters.evaluations + 1, before
        )
        is_over = progress >= 1 and length == old and not is_due
        doing = "finished" if is_over else "continuing"
        notes.append(f"{doing} after iteration {before} in {config.directory}")
        if length != old:
            counters.schedule = extended_schedule(
                counters.schedule, length, before, counters.seconds
            )
            then, progress = progress, counters.schedule.progress(before)
            counters.evaluations = int(progress * number)
            lengths = " to ".join(f"{count:g} {unit}" for unit, count in (old, length))
            notes.append(
                f"the length of the run changes from {lengths}: {progress:.0%} of it "
                f"is done instead of {then:.0%}; schedules continue from there, the "
                "learning rate with a new cosine"
            )

    with contextlib.ExitStack() as stack:
        files = None  # other processes write only their part of the checkpoints
        with raise_on_all_processes():
            if is_first_process():
                files = stack.enter_context(working_directory(directory))
        if task.game_writer is not None:
            stack.enter_context(task.game_writer.opened(directory, own_id, before))
        reporter = Reporter(files, config, restored) if files else SilentReporter()
        signals = StopSignals(reporter.message, reporter.leave)
        for context in (reporter, signals, checkpoints):
            stack.enter_context(context)
        for note in notes:
            reporter.message(note)
        trained = counters.seconds
        run = OpenRun(
            task=task,
            directory=directory,
            id=own_id,
            state=state,
            counters=counters,
            checkpoints=checkpoints,
            files=files,
            reporter=reporter,
            stops=StopRequests(signals),
            on_iteration=on_iteration,
            on_evaluation=on_evaluation,
        )
        del state, found  # the first iteration is given the arrays
        yield run

        # Wait for the last checkpoint, and say how the run ended.
        checkpoints.wait()
        iteration, (unit, number) = int(run.state.iteration), length
        lines = []
        if iteration > before:
            used, trained = clock.now().since(started), counters.seconds - trained
            lines.append(
                f"it took {duration(sum(used))}: {duration(trained)} of training, "
                f"{duration(used.compiling)} of compilation, "
                f"{duration(used.seconds - trained)} of preparation"
            )
        if not run.finished:
            left = ""
            if unit == "minutes":
                seconds = max(0.0, 60 * number - counters.seconds)
                left = f", with {duration(seconds)} left"
            lines.append(
                f"stopped after iteration {iteration}{left}; saved in "
                f"{config.directory}; the same command continues it"
            )
        elif not task.counts(run.state)["updates"]:
            lines.append(
                f"nothing was learned: no update was made in {iteration:,} iterations; "
                f"the same command with more --{unit} continues"
            )
        elif unit == "minutes" and iteration < _FEWEST:
            lines.append(
                f"only {iteration} iterations, too few to learn much: give more "
                "--minutes, or smaller chunks of self-play than "
                f"{task.positions:,} positions"
            )
        if lines:
            reporter.last_message("\n".join(lines))


@dataclasses.dataclass(eq=False)
class OpenRun(Generic[State, Player]):
    """A run in progress.

    Iterate over it: before each iteration it evaluates and saves if it is time, and
    yields the fraction of the run that is done; it ends with the run, or when a signal
    stops it. Then set `state` and call `report`:

        for progress in run:
            run.state, metrics = task.step(run.state, progress, run.enter)
            run.report(metrics)

    task: the learning algorithm.
    directory: the run directory.
    id: the run's id, which is in its files.
    state: the training state.
    counters: over all segments of the run.
    checkpoints: of the run.
    files: where the first process writes; None in the others.
    reporter: displays the run.
    stops: the stop requests.
    on_iteration: called with the metrics of each iteration.
    on_evaluation: called with the metrics of each evaluation.
    finished: whether the run has reached its end.
    """

    task: Task[State, Player]
    directory: Directory
    id: str
    state: Any
    counters: Counters
    checkpoints: "Checkpoints"
    files: WorkingDirectory | None
    reporter: Reporter | SilentReporter
    stops: StopRequests
    on_iteration: Hook | None
    on_evaluation: Hook | None
    finished: bool = False

    def __post_init__(self) -> None:
        """Starts the clock of this segment."""
        config, task = self.task.config, self.task
        self._planner = Planner(
            config.minutes,
            config.evaluation.num_evaluations,
            task.positions,
            task.iteration_seconds,
        )
        self._began = clock.now()
        # Includes earlier segments.
        self._started = self._began.seconds - self.counters.seconds

    def __iter__(self) -> Iterator[float]:
        """Yields the fraction of the run that is done, before each iteration."""
        counters, saved_at = self.counters, self.counters.seconds
        number = self.task.config.evaluation.num_evaluations
        while True:
            iteration = int(self.state.iteration)
            progress, next_evaluation = self._replan()
            evaluates = counters.is_evaluation_due(
                progress, progress * number, next_evaluation, iteration
            )
            if evaluates:
                self.enter("evaluation")
                row = self.stops.interrupting(
                    functools.partial(self.task.evaluate, self.task.player(self.state))
                )
                # It may differ between processes: other hardware, engines as opponents.
                row = broadcast_from_first_process(row)
                if row is None:
                    self._save(evaluated=False)
                    return
                row = {**row, **self._counts()}
                counters.first, counters.last = counters.first or row, row
                counters.evaluations = int(progress * number)
                self.reporter.evaluation(row)
                if self.on_evaluation is not None:
                    self.on_evaluation(row)
                progress, _ = self._replan(has_evaluated=True)
            self.finished = progress >= 1
            if self.finished or self.stops.is_requested():
                self._save(evaluated=evaluates)
                return
            minutes = (counters.seconds - saved_at) / 60
            if evaluates or minutes > self.task.config.checkpoint.every_minutes:
                saved_at = counters.seconds
                self._save(evaluated=evaluates)
            self._began = clock.now()
            if iteration == 0:
                self._started = self._began.seconds
            yield progress

    def enter(self, phase: str) -> None:
        """Shows that a phase begins, whose programs may have to be compiled."""
        self.reporter.compiling(phase)

    def report(self, metrics: Mapping[str, Any]) -> None:
        """Writes and shows the metrics of the iteration that has just ended.

        Raises:
            ValueError: a loss or a weight is not finite.
        """
        iteration, seconds = int(self.state.iteration), clock.now().since(self._began)
        check_finite(metrics, iteration, self.directory)
        self.counters.seconds = self._seconds()
        speed = self.task.positions / seconds.seconds
        row = {**self._counts(), "positions_per_second": speed, **metrics}
        self._planner.add_iteration(row)
        self.reporter.iteration(row)
        if self.on_iteration is not None:
            self.on_iteration(row)

    def result(self) -> Run[Player]:
        """Returns the result of the run, after it was closed."""
        return Run(
            self.directory,
            self.task.player(self.state),
            self.finished,
            self.task.counts(self.state)["updates"],
            self.counters.first,
            self.counters.last,
        )

    def _seconds(self) -> float:
        """Returns the time of the run, which starts with its first iteration:
        evaluation and saving of the initial network overlap with compilation."""
        began = int(self.state.iteration) > 0
        return clock.now().seconds - self._started if began else 0.0

    def _counts(self) -> dict[str, Any]:
        """Returns the first fields of every metrics row."""
        iteration = int(self.state.iteration)
        return {
            "iteration": iteration,
            "seconds": self.counters.seconds,
            "positions": iteration * self.task.positions,
            **self.task.counts(self.state),
        }

    def _replan(self, *, has_evaluated: bool = False) -> tuple[float, float]:
        """Updates the schedule by the first process's clock. Returns the fraction of
        the run that is done, and when the next evaluation is due; see
        `Planner.next_evaluation`."""
        counters, planner, seconds = self.counters, self._planner, self._seconds()
        iteration = int(self.state.iteration)
        if has_evaluated:
            planner.add_evaluation(seconds - counters.seconds)
        schedule = planner.replanned(
            counters.schedule,
            iteration,
            seconds,
            counters.evaluations,
            updates=self.task.counts(self.state)["updates"],
            has_evaluated=has_evaluated,
        )
        next_evaluation = planner.next_evaluation(counters.evaluations)
        counters.seconds, content, next_evaluation = broadcast_from_first_process(
            [seconds, schedule.to_json(), next_evaluation]
        )
        counters.schedule = (
            schedule if is_first_process() else schedule_from_json(content)
        )
        for text in planner.news():
            self.reporter.message(text)
        return counters.schedule.progress(iteration), next_evaluation

    def _save(self, *, evaluated: bool) -> None:
        """Saves a checkpoint and the player.

        `evaluated`: whether the last evaluation is of this state; its grade then
            selects the best checkpoint.
        """
        task, counters, files = self.task, self.counters, self.files
        counters.seconds = self._seconds()
        last = counters.last or {}
        mistakes = last.get(f"network_{graded(last)[0]}") if evaluated else None
        iteration = {"iteration": int(self.state.iteration)}
        values = iteration | counters.values(task.totals)
        with raise_save_error_on_all_processes():
            if is_first_process():
                check_still_there(self.directory, self.id)
            self.reporter.publish()  # first: the metrics include the checkpoint
            # First too: a run continues after its checkpoint.
            if task.game_writer is not None and (text := task.game_writer.flush()):
                self.reporter.message(text)
            # One of this iteration exists if its evaluation was interrupted.
            self.checkpoints.save(
                self.state, values, mistakes=mistakes, replaces=evaluated
            )
            if files is not None:
                with disk_errors(files.path):
                    task.save_player(files.path / PLAYER, task.player(self.state))
                    write_schedule(files.path, counters.schedule)
                with disk_errors(self.directory):
                    files.publish(PLAYER, SCHEDULE_FILE)
