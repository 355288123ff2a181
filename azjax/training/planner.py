"""The planner of a run: how many iterations fit into its minutes."""

import math
import statistics
from collections import deque
from collections.abc import Callable

from azjax.training.metrics import Row, losses
from azjax.training.plan import Entry, Plan

_FEWEST = 20  # iterations; fewer give a warning
_LATE = 0.25  # of the time; without a plan the share follows the clock from there on
_ROWS = 16  # number of newest iterations whose median is used
_DRIFT = 0.2  # of the iterations that fit; a plan that is further off is replaced
_LEAST_USE = 0.05  # of the planned iterations left; a younger plan is kept all the same
_NEWS = 0.2  # of the iterations; smaller changes of the plan are not printed
_EVALUATION_SHARE = 0.25  # of the time left at the start, at most, for evaluations
_STAGES = 100  # points of the run at which the seconds of an iteration are predicted


class Planner:
    """Plans how many iterations fit into a run of minutes, from the completed ones.

    minutes: length of the run, compilation and evaluations included; None for a run of
        a given number of iterations, whose plan is fixed.
    num_evaluations: per run, evenly spaced; fewer if they would take more than a
        quarter of the time.
    iteration_seconds: `(row, share)` to the predicted seconds of an iteration at that
        fraction of the run, given the metrics of another iteration.
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
        self._evaluation_seconds: list[float] = []
        self._evaluation_budget = math.inf  # seconds
        self._has_told_thinning = False
        self._told: Plan | None = None

    def enter(self, phase: str) -> None:
        """Records the start of a phase; the first time it is compiled."""
        self._has_compiled |= phase not in self._phases
        self._phases.add(phase)

    def add_iteration(self, row: Row) -> None:
        """Adds the metrics of an iteration, unless it compiled or made no updates, as
        its time is then not typical."""
        if losses(row) and not self._has_compiled:
            self._rows.append(row)
        self._has_compiled = False

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

    def thinning(self, evaluations: int) -> str:
        """Returns a line about evaluations that are left out, once; else an empty
        text."""
        to_come = self._evaluations_to_come(evaluations)
        planned = self._num_evaluations - evaluations
        if self._has_told_thinning or to_come == planned:
            return ""
        self._has_told_thinning = True
        return (
            f"an evaluation takes {self._typical_evaluation():.0f} s: {to_come} of the "
            f"{planned} to come are made, so that they take a quarter of the time"
        )

    def _typical_evaluation(self) -> float:
        """Returns the median of the evaluations after the first, which compiled."""
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
        plan: Plan,
        iteration: int,
        seconds: float,
        evaluations: int,
        *,
        has_evaluated: bool,
    ) -> Plan:
        """Returns the updated plan.

        The end is planned once the time of an iteration is known, and again at each
        evaluation, whenever half of the remaining iterations are done, when the planned
        iterations would take clearly more or less than the time left and a twentieth of
        them is done, and when the time is over. From a quarter of the time on, the
        share follows the clock until the end is planned.

        Args:
            plan: current plan.
            iteration: completed iterations.
            seconds: time used.
            evaluations: completed evaluations, without that of the initial network.
            has_evaluated: whether an evaluation has just ended.
        """
        if self._limit == math.inf:
            return plan
        if self._evaluation_budget == math.inf:
            self._evaluation_budget = _EVALUATION_SHARE * (self._limit - seconds)
        if seconds >= self._limit:
            return plan.ending(iteration, iteration)
        newest = plan.entries[-1]
        if self._rows:
            share = plan.share(iteration)
            to_come = self._evaluations_to_come(evaluations)
            kept_free = min(
                to_come * self._typical_evaluation(),
                max(0.0, self._evaluation_budget - sum(self._evaluation_seconds)),
            )
            fitting = (self._limit - seconds - kept_free) / self._mean_seconds(share)
            if has_evaluated or _is_outdated(newest, iteration, fitting):
                return plan.ending(iteration, iteration + max(1, round(fitting)))
        share = (seconds / self._limit - _LATE) / (1 - _LATE)
        if newest.end is None and share > newest.share:
            return plan.continued(Entry(iteration, share, None))
        return plan

    def news(self, before: Plan, after: Plan, chunk_positions: int) -> str:
        """Returns a line about a plan that differs clearly from the last one with a
        line, else an empty text; see `plan_text`.

        Args:
            before: the previous plan; at the first call the one that is known.
            after: the new plan.
            chunk_positions: positions of an iteration.
        """
        self._told = self._told or before
        text = plan_text(self._told, after, chunk_positions)
        if text:
            self._told = after
        return text

    def _mean_seconds(self, share: float) -> float:
        """Returns the predicted mean time of the remaining iterations."""
        stages = [share + (1 - share) * stage / _STAGES for stage in range(_STAGES)]
        return statistics.fmean(
            statistics.median(self._iteration_seconds(row, stage) for row in self._rows)
            for stage in stages
        )


def _is_outdated(newest: Entry, iteration: int, fitting: float) -> bool:
    """Returns whether the end is to be planned again.

    Args:
        newest: entry of the plan.
        iteration: completed iterations.
        fitting: number of iterations that fit into the time left.
    """
    if newest.end is None:
        return True
    planned = newest.end - iteration
    if planned <= 0:
        return False
    used = iteration - newest.iteration
    has_drifted = abs(planned - fitting) > max(_DRIFT * fitting, 1)
    return used >= planned or (has_drifted and used >= _LEAST_USE * planned)


def plan_text(before: Plan, after: Plan, chunk_positions: int) -> str:
    """Returns a line about a new plan of a run of minutes, with a warning if it has few
    iterations; empty if little has changed."""
    _, minutes = after.length
    advice = (
        "start another run with more --minutes, or with smaller chunks of self-play "
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
