"""Settings of a run that algorithms share: length, evaluation, checkpoints, games."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from azjax.checks import check_choice, check_int, check_number
from azjax.remote import Directory

MAX_LENGTH = 10**9  # of a run, minutes or iterations
SINKS = ("wandb", "mlflow")


@dataclasses.dataclass(frozen=True)
class BaseEvaluationConfig:
    """Evaluation settings that all algorithms share.

    Attributes:
        num_evaluations: evaluations per run, evenly spaced, besides that of the initial
            network.
        num_positions: solved positions graded in each evaluation, if the game has any.
        num_games: games against each opponent in each evaluation.
    """

    num_evaluations: int = 20
    num_positions: int = 1000
    num_games: int = 128

    def __post_init__(self) -> None:
        """Checks the values."""
        check_int("evaluation.num_evaluations", self.num_evaluations, 1)
        check_int("evaluation.num_positions", self.num_positions, 1)
        check_int("evaluation.num_games", self.num_games, 2)
        if self.num_games % 2:
            raise ValueError(f"evaluation.num_games must be even: {self.num_games}")


def check_opponents(opponents: Sequence[str]) -> None:
    """Checks that no opponent is named twice."""
    for name in opponents:
        if opponents.count(name) > 1:
            raise ValueError(f"evaluation.opponents has {name!r} twice")


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoint settings; a run also saves at its end.

    Attributes:
        every_minutes: minutes between two checkpoints.
        keep: number of the newest checkpoints to keep, besides the best.
    """

    every_minutes: float = 2.0
    keep: int = 2

    def __post_init__(self) -> None:
        """Checks the values."""
        check_number("checkpoint.every_minutes", self.every_minutes, at_least=0)
        check_int("checkpoint.keep", self.keep, 1)


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Settings of the games that a run keeps in `games/`; they may change when the run
    continues.

    Attributes:
        keep_games: keep every position of self-play.
        max_gigabytes: size of the files above which the oldest are deleted.
    """

    keep_games: bool = True
    max_gigabytes: float = 20.0

    def __post_init__(self) -> None:
        """Checks the values."""
        check_number("data.max_gigabytes", self.max_gigabytes, above=0)


@dataclasses.dataclass(frozen=True)
class ReportConfig:
    """Settings of the services that get the metrics of a run; they may change when the
    run continues.

    Attributes:
        sinks: services besides TensorBoard: `wandb` (Weights & Biases), `mlflow`.
    """

    sinks: tuple[Literal["wandb", "mlflow"], ...] = ()

    def __post_init__(self) -> None:
        """Checks the values."""
        for name in self.sinks:
            check_choice("report.sinks", name, SINKS)
            if self.sinks.count(name) > 1:
                raise ValueError(f"report.sinks has {name!r} twice")


def check_length(minutes: object, iterations: object) -> None:
    """Checks the length of a run; None is allowed."""
    if minutes is not None:
        check_number("minutes", minutes, above=0, at_most=MAX_LENGTH)
    if iterations is not None:
        check_int("iterations", iterations, 1, MAX_LENGTH)


def flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the names of nested settings, such as `learner.batch_size`, and their
    values."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


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
