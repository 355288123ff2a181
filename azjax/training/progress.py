"""The host's counts over a run, which checkpoints hold."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from azjax.training.metrics import with_scores
from azjax.training.plan import Plan, plan_from_json

Totals = Mapping[str, float]


@dataclasses.dataclass
class Progress:
    """The host's counts over all sessions of a run, saved with the state.

    plan: which share of the run is over after each iteration.
    seconds: used.
    evaluations: made, without that of the first network.
    first: the evaluation of the first network.
    last: the newest evaluation.
    totals: sums over the run, of the algorithm.
    """

    plan: Plan
    seconds: float = 0.0
    evaluations: int = 0
    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    totals: Totals = dataclasses.field(default_factory=dict)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Progress":
        """Returns the progress that `values` wrote."""
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
        self, share: float, num_evaluations: int, iteration: int
    ) -> bool:
        """Returns whether to evaluate now: before the run, `num_evaluations` times in
        it, and at its end, but not again when a finished run is begun."""
        if self.first is None or int(share * num_evaluations) > self.evaluations:
            return True
        return share >= 1 and (self.last or {}).get("iteration") != iteration

    def add_evaluation(self, row: dict[str, Any], evaluations: int) -> None:
        """Stores an evaluation, and how many there are with it."""
        self.first, self.last = self.first or row, row
        self.evaluations = evaluations
