"""Settings of the evaluations of an AlphaZero run."""

import dataclasses

from azjax.checks import check_int
from azjax.search import MAX_NODES
from azjax.training.run_config import BaseEvaluationConfig, check_opponents


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(BaseEvaluationConfig):
    """Evaluation settings.

    Attributes:
        num_simulations: simulations of the evaluated search.
        opponents: player specs, as `azjax.players.load` takes them; the network without
            search plays a match against each.
    """

    num_simulations: int = 64
    opponents: tuple[str, ...] = ("random",)

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        check_int("evaluation.num_simulations", self.num_simulations, 1, MAX_NODES)
        check_opponents(self.opponents)
