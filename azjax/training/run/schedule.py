"""The schedule of a run: its progress after each iteration, and how it is planned."""

import dataclasses
import json
import math
import statistics
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from azjax.files import Directory, open_regular, replace_file
from azjax.training.run.metrics import Row, losses

SCHEDULE_FILE = "schedule.json"
MAX_SCHEDULE_BYTES = 2**20
_MAX_ITERATIONS = 2**31 - 1
_PATIENCE = 10  # times its length that a run takes at most until its first update
_ROWS = 16  # number of newest iterations whose median is used
_DRIFT = 0.2  # of the iterations that fit; a schedule that is further off is replaced
_LEAST_USE = (
    0.05  # of the planned iterations left; a younger schedule is kept all the same
)
_NEWS = 0.2  # of the iterations; smaller changes of the schedule are not printed
_EVALUATION_SHARE = 0.25  # of the time left at the start, at most, for evaluations
_STAGES = 100  # points of the run at which the seconds of an iteration are predicted


class Entry(NamedTuple):
    """An entry of a schedule, valid until the next one.

    iteration: first iteration.
    progress: fraction of the run that is done then, in [0, 1].
    end: last iteration of the run; None if unknown.
    """

    iteration: int
    progress: float
    end: int | None


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The fraction of a run that is done after each iteration; schedules follow it.

    The fraction rises linearly with the iterations, hence with the positions played,
    until an entry changes the end. While the end is unknown (in a run of minutes,
    before it is planned) it is that of the last entry, initially 0.

    length: of the run when the last entry was added, (`minutes` or `iterations`,
        number).
    entries: sorted by iteration; at least one.
    """

    length: tuple[str, float]
    entries: tuple[Entry, ...]

    def progress(self, iteration: int) -> float:
        """Returns the fraction of the run that is done after `iteration` iterations."""
        entry = next(entry for entry in self.entries[::-1] if entry[0] <= iteration)
        if entry.end is None:
            return entry.progress
        if iteration >= entry.end:
            return 1.0
        done = (iteration - entry.iteration) / (entry.end - entry.iteration)
        return entry.progress + (1 - entry.progress) * done

    @property
    def end(self) -> int | None:
        """The last iteration of the run; None if unknown."""
        return self.entries[-1].end

    def ending(self, iteration: int, end: int | None) -> "Schedule":
        """Returns the schedule with another end, from an iteration on."""
        return self.continued(Entry(iteration, self.progress(iteration), end))

    def continued(self, entry: Entry) -> "Schedule":
        """Returns the schedule with another entry, in place of those from there on."""
        kept = (old for old in self.entries if old.iteration < entry.iteration)
        return dataclasses.replace(self, entries=(*kept, entry))

    def to_json(self) -> dict[str, Any]:
        """Returns the schedule as JSON values."""
        return {
            "length": self.length,
            "entries": [entry._asdict() for entry in self.entries],
        }


def new_schedule(length: tuple[str, float]) -> Schedule:
    """Returns the schedule of a new run; the end of a run of minutes is unknown.

    Args:
        length: (`minutes` or `iterations`, number).
    """
    unit, number = length
    end = int(number) if unit == "iterations" else None
    return Schedule(length, (Entry(0, 0.0, end),))


def extended_schedule(
    schedule: Schedule, length: tuple[str, float], iteration: int, seconds: float
) -> Schedule:
    """Returns the schedule of a run whose length changes.

    The fraction done becomes the completed iterations, or the minutes used, divided by
    the new length, so that schedules continue as in a run of that length. The learning
    rate rises again to that run's cosine (compare the warm restarts of Loshchilov and
    Hutter 2017, "SGDR").

    Args:
        schedule: current schedule.
        length: new length, (`minutes` or `iterations`, number).
        iteration: completed iterations.
        seconds: time used.

    Raises:
        ValueError: the run has already used more.
    """
    unit, number = length
    used = iteration if unit == "iterations" else seconds / 60
    if number <= used:
        raise ValueError(
            f"{unit} must be more than the {used:.5g} that the run has used: {number:g}"
        )
    end = int(number) if unit == "iterations" else None
    entry = Entry(iteration, used / number, end)
    return dataclasses.replace(schedule.continued(entry), length=length)


def schedule_from_json(content: Any) -> Schedule:
    """Returns the schedule from JSON of any origin, in the form of `Schedule.to_json`.

    Raises:
        ValueError: it is not a schedule.
    """
    try:
        unit, number = content["length"]
        entries = tuple(Entry(**entry) for entry in content["entries"])
        iterations = [entry.iteration for entry in entries]
        ends = [entry.end for entry in entries if entry.end is not None]
        numbers = (number, *(entry.progress for entry in entries))
        is_plan = (
            unit in ("minutes", "iterations")
            and all(type(value) in (int, float) for value in numbers)
            and 0 < number <= _MAX_ITERATIONS
            and all(0 <= entry.progress <= 1 for entry in entries)
            and all(type(value) is int for value in (*iterations, *ends))
            and iterations == sorted(set(iterations))
            and iterations[:1] == [0]
            and all(entry.iteration <= (entry.end or math.inf) for entry in entries)
            and max(iterations + ends) <= _MAX_ITERATIONS
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("it is not a schedule") from error
    if not is_plan:
        raise ValueError("it is not a schedule")
    return Schedule((unit, number), entries)


def read_schedule(directory: Directory) -> Schedule:
    """Reads the schedule of a run, from a directory of any content.

    Raises:
        ValueError: the schedule is missing or damaged.
    """
    path = directory / SCHEDULE_FILE
    try:
        with open_regular(path, MAX_SCHEDULE_BYTES) as file:
            return schedule_from_json(json.loads(file.read(MAX_SCHEDULE_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ValueError(
            f"there is no schedule to repeat in {path}: {problem}"
        ) from None


def schedule_to_repeat(directory: Directory) -> tuple[Schedule, int]:
    """Returns the schedule of a run, for another run, and its last iteration."""
    schedule = read_schedule(directory)
    if not schedule.end:
        raise ValueError(
            f"the schedule in {directory / SCHEDULE_FILE} has no end, or no iteration: "
            "the run stopped before its first iteration, or before its end was planned"
        )
    return schedule, schedule.end


def write_schedule(directory: Path, schedule: Schedule) -> None:
    """Writes the schedule of a run into its directory."""
    content = json.dumps(schedule.to_json(), indent=2) + "\n"
    replace_file(directory / SCHEDULE_FILE, content.encode())


class Planner:
    """Plans how many iterations fit into a run of minutes, from the completed ones.

    minutes: length of the run by its clock, evaluations included; None for a run of a
        given number of iterations, whose schedule is fixed.
    num_evaluations: per run, evenly spaced; fewer if they would take more than a
        quarter of the time.
    positions: of an iteration.
    iteration_seconds: `(row, progress)` to the predicted seconds of an iteration at
        that fraction of the run, given the metrics of another iteration.
    """

    def __init__(
        self,
        minutes: float | None,
        num_evaluations: int,
        positions: int,
        iteration_seconds: Callable[[Row, float], float],
    ):
        self._limit = math.inf if minutes is None else 60 * minutes
        self._num_evaluations = num_evaluations
        self._positions = positions
        self._iteration_seconds = iteration_seconds
        self._rows: deque[Row] = deque(maxlen=_ROWS)
        self._num_rows = 0
        self._evaluation_seconds: list[float] = []
        self._evaluation_budget = math.inf  # seconds
        self._told_end = 0  # of the schedule in the newest line about one
        self._has_told_thinning = self._has_told_overtime = False
        self._news: list[str] = []

    def add_iteration(self, row: Row) -> None:
        """Adds the metrics of an iteration with updates; others are not typical. The
        first one, which also loads the programs, counts until there is a second."""
        if not losses(row):
            return
        if self._num_rows == 1:
            self._rows.clear()
        self._rows.append(row)
        self._num_rows += 1

    def add_evaluation(self, seconds: float) -> None:
        """Adds the time of an evaluation with its plot."""
        self._evaluation_seconds.append(seconds)

    def next_evaluation(self, evaluations: int) -> float:
        """Returns the number of evaluations that are due when the next one is made:
        one more, or a larger fraction if slow evaluations are left out."""
        to_come = self._evaluations_to_come(evaluations)
        if not to_come:
            return math.inf
        return evaluations + (self._num_evaluations - evaluations) / to_come

    def news(self) -> list[str]:
        """Returns lines about the newest schedule: the first one, and after evaluations
        one that differs clearly from what earlier lines said."""
        news, self._news = self._news, []
        return news

    def _typical_evaluation(self) -> float:
        """Returns the median of the evaluations after the first, which also loads what
        evaluations need."""
        return statistics.median(self._evaluation_seconds[1:] or [0.0])

    def _evaluations_to_come(self, evaluations: int) -> int:
        """Returns the number of further evaluations that their share of the time
        allows; the last one, at the end, is made in any case."""
        to_come, typical = (
            self._num_evaluations - evaluations,
            self._typical_evaluation(),
        )
        if not typical or self._evaluation_budget == math.inf:
            return to_come
        left = self._evaluation_budget - sum(self._evaluation_seconds)
        return min(to_come, max(int(left / typical), 1))

    def replanned(
        self,
        schedule: Schedule,
        iteration: int,
        seconds: float,
        evaluations: int,
        *,
        updates: int,
        has_evaluated: bool,
    ) -> Schedule:
        """Returns the updated schedule.

        The end is planned after the first two iterations with updates, and again at
        each evaluation, whenever half of the remaining iterations are done, when the
        planned iterations would take clearly more or less than the time left
        and a twentieth of them is done, and when the time is over. A run without an
        update goes on to the first one, for ten times its length at most.

        Args:
            schedule: current schedule.
            iteration: completed iterations.
            seconds: time used.
            evaluations: completed evaluations, without that of the initial network.
            updates: completed updates.
            has_evaluated: whether an evaluation has just ended.
        """
        if self._limit == math.inf:
            return schedule
        if self._evaluation_budget == math.inf:
            self._evaluation_budget = _EVALUATION_SHARE * (self._limit - seconds)
            self._told_end = schedule.end or 0
        minutes = self._limit / 60
        planned = self._num_evaluations - evaluations
        to_come = self._evaluations_to_come(evaluations)
        if to_come < planned and not self._has_told_thinning:
            self._has_told_thinning = True
            self._news.append(
                f"an evaluation takes {self._typical_evaluation():.0f} s: {to_come} of "
                f"the {planned} to come are made, so that they take a quarter of the "
                "time"
            )
        if seconds >= self._limit:
            if updates or seconds >= _PATIENCE * self._limit:
                return schedule.ending(iteration, iteration)
            if not self._has_told_overtime:
                self._has_told_overtime = True
                self._news.append(
                    f"{minutes:g} minutes are over before the first update: training "
                    f"goes on to it, for {_PATIENCE * minutes:g} minutes at most"
                )
            return schedule
        if not self._rows:
            return schedule
        progress = schedule.progress(iteration)
        kept_free = min(
            to_come * self._typical_evaluation(),
            max(0.0, self._evaluation_budget - sum(self._evaluation_seconds)),
        )
        # The predicted mean time of the remaining iterations.
        stages = [progress + (1 - progress) * n / _STAGES for n in range(_STAGES)]
        mean_seconds = statistics.fmean(
            statistics.median(self._iteration_seconds(row, stage) for row in self._rows)
            for stage in stages
        )
        fitting = (self._limit - seconds - kept_free) / mean_seconds
        newest = schedule.entries[-1]
        is_outdated = newest.end is None
        if newest.end is not None and newest.end > iteration:
            left, used = newest.end - iteration, iteration - newest.iteration
            has_drifted = abs(left - fitting) > max(_DRIFT * fitting, 1)
            is_outdated = used >= left or (has_drifted and used >= _LEAST_USE * left)
        if has_evaluated or self._num_rows == 2 or is_outdated:
            schedule = schedule.ending(iteration, iteration + max(1, round(fitting)))
        end = schedule.end or 0
        is_told = self._told_end and not has_evaluated
        has_changed = abs(self._told_end - end) >= _NEWS * end
        if self._num_rows > 1 and has_changed and not is_told:
            self._told_end = end
            self._news.append(
                f"planned: {end:,} iterations, {end * self._positions:,} positions in "
                f"{minutes:g} minutes"
            )
        return schedule
