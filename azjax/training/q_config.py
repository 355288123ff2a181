"""Settings of a run of Q-learning."""

import dataclasses
import re
from typing import Annotated, Any, ClassVar, Literal

from azjax import games
from azjax.networks import QNetworkConfig
from azjax.players.serialization import Q_LEARNING
from azjax.remote import Directory, as_run_directory
from azjax.settings import Fraction, Seed, Settings, Within
from azjax.training.run_config import (
    BaseEvaluationConfig,
    CheckpointConfig,
    Iterations,
    Minutes,
    ReportConfig,
    check_opponents,
)

SELF = "self"
DEFAULT_MINUTES = 2.0
# Limits on a game's actions; the pair network evaluates every action as a batch row.
MAX_PAIR_ACTIONS = 128
MAX_ACTIONS = 512
# Depths of the default minimax opponent (moves).
MAX_FULL_DEPTH = 9
USUAL_DEPTH = 4


@dataclasses.dataclass(frozen=True)
class FitConfig(Settings):
    """Settings of offline learning from a batch of moves.

    Attributes:
        sweeps: sweeps per batch; each computes the targets from the current network and
            fits the network to them (fitted Q iteration, Ernst et al. 2005).
        batch_size: moves per update.
        max_epochs: maximum passes over the batch in a sweep.
        low_loss: a sweep ends when the mean loss of a pass is below it.
    """

    section: ClassVar[str] = "fit."

    sweeps: Annotated[int, Within(ge=1)] = 4
    batch_size: Annotated[int, Within(ge=1)] = 256
    max_epochs: Annotated[int, Within(ge=1)] = 4
    low_loss: Annotated[float, Within(ge=0)] = 1e-3


@dataclasses.dataclass(frozen=True)
class QEvaluationConfig(BaseEvaluationConfig):
    """Evaluation settings.

    Attributes:
        opponents: player specs, as `azjax.players.load` takes them; by default `random`
            and `minimax`, whose depth is the whole game if it has at most 9 moves, else
            4.
    """

    num_evaluations: Annotated[int, Within(ge=1)] = 10
    num_games: Annotated[int, Within(ge=2)] = 200
    opponents: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        check_opponents(self.opponents or ())


@dataclasses.dataclass(frozen=True)
class QConfig(Settings):
    """Settings of a run of Q-learning.

    Attributes:
        game: spec of a small game.
        minutes: length of the run, evaluation included, compilation not; 2 if neither
            this nor `iterations` is given.
        iterations: length of the run in batches of moves.
        seed: seed of all random numbers.
        run_dir: run directory, local or `gs://BUCKET/RUN`; `runs/q_GAME` by default.
        network: network settings.
        learning: `offline` collects a batch of moves and then fits the network to it;
            `online` makes an update after every move of the parallel games.
        opponent: player spec of the opponent in training; `self` learns from the moves
            of both sides.
        games: games played at once.
        moves: moves in each game per iteration; `games` times `moves` is the offline
            batch.
        first_epsilon: initial fraction of random moves.
        final_epsilon: final fraction of random moves.
        epsilon_fall: fraction of the run in which epsilon falls linearly.
        learning_rate: initial rate of Adam; it falls linearly to 0.
        fit: settings of offline learning.
        evaluation: evaluation settings.
        checkpoint: checkpoint settings.
        report: services that get the metrics.
    """

    game: str
    minutes: Minutes = None
    iterations: Iterations = None
    seed: Seed = 0
    run_dir: str | None = None
    network: QNetworkConfig = dataclasses.field(default_factory=QNetworkConfig)
    learning: Literal["offline", "online"] = "offline"
    opponent: str = SELF
    games: Annotated[int, Within(ge=1)] = 256
    moves: Annotated[int, Within(ge=1)] = 16
    first_epsilon: Fraction = 1.0
    final_epsilon: Fraction = 0.2
    epsilon_fall: Fraction = 0.5
    learning_rate: Annotated[float, Within(gt=0)] = 2e-3
    fit: FitConfig = FitConfig()
    evaluation: QEvaluationConfig = QEvaluationConfig()
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    report: ReportConfig = dataclasses.field(default_factory=ReportConfig)

    def __post_init__(self) -> None:
        """Checks the values."""
        game = games.make(self.game)
        object.__setattr__(self, "game", repr(game))  # canonical spelling
        _check_game(game, self.network.form)
        if self.minutes is not None and self.iterations is not None:
            raise ValueError(
                "only one of minutes and iterations can be given: "
                f"minutes={self.minutes}, iterations={self.iterations}"
            )
        if self.minutes is None and self.iterations is None:
            object.__setattr__(self, "minutes", DEFAULT_MINUTES)
        super().__post_init__()
        as_run_directory(self.run_dir or "")
        if self.learning == "offline" and self.fit.batch_size > self.batch_moves:
            raise ValueError(
                f"fit.batch_size must be at most games times moves, {self.batch_moves}"
                f": {self.fit.batch_size}"
            )

    @property
    def directory(self) -> Directory:
        """The run directory."""
        name = re.sub("[^a-z0-9]+", "_", self.game)
        return as_run_directory(self.run_dir or f"runs/q_{name}")

    @property
    def opponents(self) -> tuple[str, ...]:
        """The opponents in evaluations."""
        if self.evaluation.opponents is not None:
            return self.evaluation.opponents
        length = games.make(self.game).max_moves
        depth = length if length <= MAX_FULL_DEPTH else USUAL_DEPTH
        return ("random", f"minimax:{depth}")

    @property
    def batch_moves(self) -> int:
        """Moves of all games per iteration."""
        return self.games * self.moves

    def epsilon(self, share: float) -> float:
        """Returns the fraction of random moves at a fraction of the run."""
        fallen = min(1.0, share / self.epsilon_fall) if self.epsilon_fall else 1.0
        return self.first_epsilon + fallen * (self.final_epsilon - self.first_epsilon)

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values."""
        return {"kind": Q_LEARNING, **dataclasses.asdict(self)}


def _check_game(game: games.Game, form: str) -> None:
    limit = MAX_PAIR_ACTIONS if form == "pair" else MAX_ACTIONS
    if game.num_actions <= limit:
        return
    hint = (
        "; network.form=state takes more"
        if form == "pair" and game.num_actions <= MAX_ACTIONS
        else ""
    )
    raise ValueError(
        f"{game!r} has {game.num_actions} actions; Q-learning with network.form={form} "
        f"takes at most {limit}{hint}"
    )
