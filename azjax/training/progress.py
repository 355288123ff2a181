"""The host's counters of a run, stored in checkpoints."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from azjax.training.metrics import with_scores
from azjax.training.plan import Plan, plan_from_json

Totals = Mapping[str, float]


@dataclasses.dataclass
class Progress:
    """The host's counters over all segments of a run.

    plan: fraction of the run that is done after each iteration.
    seconds: time used.
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
        """Returns the progress from the result of `values`."""
        totals = dict(values)
        own = {
            field.name: totals.pop(field.name)
            for field in dataclasses.fields(cls)
            if field.name != "totals"
        }
        for name in ("first", "last"):
            own[name] = own[name] and with_scores(own[name])
        own["plan"] = plan_from_json(own["plan"])
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

    def add_evaluation(self, row: dict[str, Any], evaluations: int) -> None:
        """Adds an evaluation; `evaluations` is the new number of them."""
        self.first, self.last = self.first or row, row
        self.evaluations = evaluations
