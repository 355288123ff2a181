"""Settings of a run that algorithms share: length, evaluation, checkpoints, games."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol

from azjax.remote import Directory
from azjax.settings import Settings, Within, flattened

__all__ = ["flattened"]

MAX_LENGTH = 10**9  # of a run, minutes or iterations
Minutes = Annotated[float | None, Within(gt=0, le=MAX_LENGTH)]
Iterations = Annotated[int | None, Within(1, MAX_LENGTH)]


@dataclasses.dataclass(frozen=True)
class BaseEvaluationConfig(Settings):
    """Evaluation settings that all algorithms share.

    Attributes:
        num_evaluations: evaluations per run, evenly spaced, besides that of the initial
            network.
        num_positions: solved positions graded in each evaluation, if the game has any.
        num_games: games against each opponent in each evaluation.
    """

    section: ClassVar[str] = "evaluation."

    num_evaluations: Annotated[int, Within(ge=1)] = 20
    num_positions: Annotated[int, Within(ge=1)] = 1000
    num_games: Annotated[int, Within(ge=2)] = 128

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.num_games % 2:
            raise ValueError(f"evaluation.num_games must be even: {self.num_games}")


def check_opponents(opponents: Sequence[str]) -> None:
    """Checks that no opponent is named twice."""
    for name in opponents:
        if opponents.count(name) > 1:
            raise ValueError(f"evaluation.opponents has {name!r} twice")


@dataclasses.dataclass(frozen=True)
class CheckpointConfig(Settings):
    """Checkpoint settings; a run also saves at its end.

    Attributes:
        every_minutes: minutes between two checkpoints.
        keep: number of the newest checkpoints to keep, besides the best.
    """

    section: ClassVar[str] = "checkpoint."

    every_minutes: Annotated[float, Within(ge=0)] = 2.0
    keep: Annotated[int, Within(ge=1)] = 2


@dataclasses.dataclass(frozen=True)
class DataConfig(Settings):
    """Settings of the games that a run keeps in `games/`; they may change when the run
    continues.

    Attributes:
        keep_games: keep every position of self-play.
        max_gigabytes: size of the files above which the oldest are deleted.
    """

    section: ClassVar[str] = "data."

    keep_games: bool = True
    max_gigabytes: Annotated[float, Within(gt=0)] = 20.0


@dataclasses.dataclass(frozen=True)
class ReportConfig(Settings):
    """Settings of the services that get the metrics of a run; they may change when the
    run continues.

    Attributes:
        sinks: services besides TensorBoard: `wandb` (Weights & Biases), `mlflow`.
    """

    section: ClassVar[str] = "report."

    sinks: tuple[Literal["wandb", "mlflow"], ...] = ()

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        for name in self.sinks:
            if self.sinks.count(name) > 1:
                raise ValueError(f"report.sinks has {name!r} twice")


class RunConfig(Protocol):
    """The settings of a run, common to all algorithms."""

    @property
    def directory(self) -> Directory:
        """The run directory."""
        ...

    @property
    def game(self) -> str:
        """The game's spec."""
        ...

    @property
    def minutes(self) -> float | None:
        """Length of the run; None if it is given in iterations."""
        ...

    @property
    def iterations(self) -> int | None:
        """Length of the run; None if it is given in minutes."""
        ...

    @property
    def evaluation(self) -> BaseEvaluationConfig:
        """Evaluation settings."""
        ...

    @property
    def checkpoint(self) -> CheckpointConfig:
        """Checkpoint settings."""
        ...

    @property
    def report(self) -> ReportConfig:
        """Services that get the metrics."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values, with `kind` unless it is AlphaZero's."""
        ...
