"""The planner of a run: how many iterations fit into its minutes."""

import math
import statistics
from collections import deque
from collections.abc import Callable

from azjax.training.metrics import Row, losses
from azjax.training.plan import Plan

_FEWEST = 20  # iterations; a run of fewer is warned of
_LATE = 0.25  # of the time; from there on the share follows the clock without a plan
_ROWS = 16  # the newest iterations, whose median is taken
_NEWS = 0.2  # of the iterations; a smaller change of the plan is not printed
_STAGES = 100  # shares of the run at which the seconds of an iteration are computed


class Planner:
    """Plans how many iterations fit into a run of minutes, from those already done.

    minutes: of the run, compiling and evaluations included; None for a run of a number
        of iterations, whose plan does not change.
    num_evaluations: in the run, evenly spaced.
    iteration_seconds: `(row, share)` to the expected seconds of an iteration at that
        share of the run, given the row of another iteration.
    """

    def __init__(
        self,
        minutes: float | None,
        num_evaluations: int,
        iteration_seconds: Callable[[Row, float], float],
    ):
        self._limit = math.inf if minutes is None else 60 * minutes
        self._num_evaluations = num_evaluations
        self._iteration_seconds = iteration_seconds
        self._rows: deque[Row] = deque(maxlen=_ROWS)
        self._phases: set[str] = set()
        self._has_compiled = False
        self._has_evaluated = False
        self._evaluation_seconds = 0.0

    def enter(self, phase: str) -> None:
        """Stores that a phase of an iteration begins; the first time it is compiled."""
        self._has_compiled |= phase not in self._phases
        self._phases.add(phase)

    def add_iteration(self, row: Row) -> None:
        """Stores the row of an iteration, unless it compiled or made no updates: then
        later ones take another time."""
        if losses(row) and not self._has_compiled:
            self._rows.append(row)
        self._has_compiled = False

    def add_evaluation(self, seconds: float) -> None:
        """Stores the time of an evaluation with its plot. The first one is left out: it
        compiled."""
        if self._has_evaluated:
            self._evaluation_seconds = seconds
        self._has_evaluated = True

    def replanned(
        self, plan: Plan, iteration: int, seconds: float, *, has_evaluated: bool
    ) -> Plan:
        """Returns the plan from here on.

        A plan is made as soon as the duration of an iteration is known, and again at
        each evaluation, whenever half of the iterations that were left are done, and
        when the time is over. From a quarter of the time on, the share follows the
        clock until there is a plan.

        Args:
            plan: until now.
            iteration: done.
            seconds: used.
            has_evaluated: whether there was an evaluation just now.
        """
        if self._limit == math.inf:
            return plan
        if seconds >= self._limit:
            return plan.ending(iteration, iteration)
        newest = plan.entries[-1]
        is_halfway = (
            newest.end is not None
            and newest.iteration + newest.end <= 2 * iteration < 2 * newest.end
        )
        if self._rows and (has_evaluated or newest.end is None or is_halfway):
            share = plan.share(iteration)
            left = self._limit - seconds - self._seconds_of_evaluations(share)
            end = iteration + max(1, round(left / self._mean_seconds(share)))
            return plan.ending(iteration, end)
        share = (seconds / self._limit - _LATE) / (1 - _LATE)
        if newest.end is None and share > newest.share:
            return plan.at(iteration, share)
        return plan

    def _seconds_of_evaluations(self, share: float) -> float:
        """Returns the time of the evaluations that are still to come."""
        left = self._num_evaluations - int(share * self._num_evaluations)
        return left * self._evaluation_seconds

    def _mean_seconds(self, share: float) -> float:
        """Returns the mean over the iterations that are still to come."""
        stages = [share + (1 - share) * stage / _STAGES for stage in range(_STAGES)]
        return statistics.fmean(
            statistics.median(self._iteration_seconds(row, stage) for row in self._rows)
            for stage in stages
        )


def plan_text(before: Plan, after: Plan, chunk_positions: int) -> str:
    """Returns a line about the new plan of a run of minutes, with a warning if it has
    few iterations; empty if little has changed."""
    _, minutes = after.length
    advice = (
        "begin another run with more --minutes, or with smaller chunks of self-play "
        f"than {chunk_positions:,} positions"
    )
    if after.end is None:
        newest = after.entries[-1]
        if before.entries[-1].share > 0 or newest.share == 0:
            return ""
        return (
            f"iteration {newest.iteration} ended after more than a quarter of "
            f"{minutes:g} minutes, compiling included: {advice} if few follow"
        )
    is_over = after.end == after.entries[-1].iteration
    if is_over or abs((before.end or 0) - after.end) < _NEWS * after.end:
        return ""
    positions = f"{after.end * chunk_positions:,} positions"
    text = f"planned: {after.end:,} iterations, {positions} in {minutes:g} minutes"
    if after.end >= _FEWEST:
        return text
    return f"{text}; too few iterations to learn much: {advice}"
