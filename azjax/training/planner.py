"""The planner of a run: how many iterations fit into its minutes."""

import math
import statistics
from collections import deque
from collections.abc import Callable

from azjax.training.metrics import Row, losses
from azjax.training.plan import Entry, Plan

_PATIENCE = 10  # times its length that a run takes at most until its first update
_ROWS = 16  # number of newest iterations whose median is used
_DRIFT = 0.2  # of the iterations that fit; a plan that is further off is replaced
_LEAST_USE = 0.05  # of the planned iterations left; a younger plan is kept all the same
_NEWS = 0.2  # of the iterations; smaller changes of the plan are not printed
_EVALUATION_SHARE = 0.25  # of the time left at the start, at most, for evaluations
_STAGES = 100  # points of the run at which the seconds of an iteration are predicted


class Planner:
    """Plans how many iterations fit into a run of minutes, from the completed ones.

    minutes: length of the run by its clock, evaluations included; None for a run of a
        given number of iterations, whose plan is fixed.
    num_evaluations: per run, evenly spaced; fewer if they would take more than a
        quarter of the time.
    positions: of an iteration.
    iteration_seconds: `(row, share)` to the predicted seconds of an iteration at that
        fraction of the run, given the metrics of another iteration.
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
        self._told_end = 0  # of the plan in the newest line about one
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
        """Returns lines about the newest plan: the first one, and after evaluations
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
        plan: Plan,
        iteration: int,
        seconds: float,
        evaluations: int,
        *,
        updates: int,
        has_evaluated: bool,
    ) -> Plan:
        """Returns the updated plan.

        The end is planned after the first two iterations with updates, and again at
        each evaluation, whenever half of the remaining iterations are done, when the
        planned iterations would take clearly more or less than the time left
        and a twentieth of them is done, and when the time is over. A run without an
        update goes on to the first one, for ten times its length at most.

        Args:
            plan: current plan.
            iteration: completed iterations.
            seconds: time used.
            evaluations: completed evaluations, without that of the initial network.
            updates: completed updates.
            has_evaluated: whether an evaluation has just ended.
        """
        if self._limit == math.inf:
            return plan
        if self._evaluation_budget == math.inf:
            self._evaluation_budget = _EVALUATION_SHARE * (self._limit - seconds)
            self._told_end = plan.end or 0
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
                return plan.ending(iteration, iteration)
            if not self._has_told_overtime:
                self._has_told_overtime = True
                self._news.append(
                    f"{minutes:g} minutes are over before the first update: training "
                    f"goes on to it, for {_PATIENCE * minutes:g} minutes at most"
                )
            return plan
        if not self._rows:
            return plan
        share = plan.share(iteration)
        kept_free = min(
            to_come * self._typical_evaluation(),
            max(0.0, self._evaluation_budget - sum(self._evaluation_seconds)),
        )
        fitting = (self._limit - seconds - kept_free) / self._mean_seconds(share)
        is_better_known = has_evaluated or self._num_rows == 2
        if is_better_known or _is_outdated(plan.entries[-1], iteration, fitting):
            plan = plan.ending(iteration, iteration + max(1, round(fitting)))
        end = plan.end or 0
        is_told = self._told_end and not has_evaluated
        has_changed = abs(self._told_end - end) >= _NEWS * end
        if self._num_rows > 1 and has_changed and not is_told:
            self._told_end = end
            self._news.append(
                f"planned: {end:,} iterations, {end * self._positions:,} positions in "
                f"{minutes:g} minutes"
            )
        return plan

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
