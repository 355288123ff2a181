"""The settings of a run of Q-learning."""

import dataclasses
import re
from typing import Any, Literal

from azjax import games
from azjax.checks import check_choice, check_int, check_number, check_seed
from azjax.networks import QNetworkConfig
from azjax.players.q_serialization import KIND
from azjax.remote import Directory, as_run_directory
from azjax.training.config import (
    BaseEvaluationConfig,
    CheckpointConfig,
    check_length,
    check_opponents,
)

SELF = "self"
DEFAULT_MINUTES = 2.0
# Every action of every position learnt from is a row of its own where the network takes
# pairs; and games of more actions than the second are not small.
MAX_PAIR_ACTIONS = 128
MAX_ACTIONS = 512
# Of the minimax player that it is measured against (moves).
MAX_FULL_DEPTH = 9
USUAL_DEPTH = 4


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """How a batch of moves is learnt from where that is done offline.

    Attributes:
        sweeps: times that the targets are computed from the newest network, and the
            network is fitted to them (fitted Q iteration, Ernst et al. 2005).
        batch_size: moves an update.
        max_epochs: passes over the batch in a sweep, at most.
        low_loss: a sweep ends when the mean loss of a pass is below it.
    """

    sweeps: int = 4
    batch_size: int = 256
    max_epochs: int = 4
    low_loss: float = 1e-3

    def __post_init__(self) -> None:
        """Checks the values."""
        for name in ("sweeps", "batch_size", "max_epochs"):
            check_int(f"fit.{name}", getattr(self, name), 1)
        check_number("fit.low_loss", self.low_loss, at_least=0)


@dataclasses.dataclass(frozen=True)
class QEvaluationConfig(BaseEvaluationConfig):
    """How often and how the run is measured while it lasts.

    Attributes:
        opponents: players as `azjax.players.load` takes them; `random` and `minimax` if
            they are not given, which sees to the end of a game of at most 9 moves, and
            4 moves ahead in a longer one.
    """

    num_evaluations: int = 10
    num_games: int = 200
    opponents: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        check_opponents(self.opponents or ())


@dataclasses.dataclass(frozen=True)
class QConfig:
    """A run of Q-learning.

    Attributes:
        game: a small one of those that `azjax games` lists.
        minutes: how long the run lasts, compilation and evaluation included; 2 if
            neither this nor `iterations` is given.
        iterations: how long the run lasts instead, in batches of moves.
        seed: of all chance in the run.
        run_dir: where everything is written, `runs/q_GAME` by default; a directory of
            this machine, or `gs://BUCKET/RUN`.
        network: the network's make.
        learning: `offline` collects a batch of moves and then fits the network to it;
            `online` makes one update after every move of the games played at once.
        opponent: against whom is played, a player as `azjax play` takes it; `self`
            learns from the moves of both sides.
        games: played at once.
        moves: made in each of them in an iteration; `games` times `moves` is the batch
            that is learnt from offline.
        first_epsilon: the share of random moves in the beginning.
        final_epsilon: their share in the end.
        epsilon_fall: the share of the run in which it falls from one to the other.
        learning_rate: of Adam in the beginning; it falls to 0 in a straight line.
        fit: how a batch is learnt from offline.
        evaluation: how the run is measured.
        checkpoint: how often it is saved.
    """

    game: str
    minutes: float | None = None
    iterations: int | None = None
    seed: int = 0
    run_dir: str | None = None
    network: QNetworkConfig = dataclasses.field(default_factory=QNetworkConfig)
    learning: Literal["offline", "online"] = "offline"
    opponent: str = SELF
    games: int = 256
    moves: int = 16
    first_epsilon: float = 1.0
    final_epsilon: float = 0.2
    epsilon_fall: float = 0.5
    learning_rate: float = 2e-3
    fit: FitConfig = FitConfig()
    evaluation: QEvaluationConfig = QEvaluationConfig()
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        """Checks the values."""
        game = games.make(self.game)
        object.__setattr__(self, "game", repr(game))  # one spelling of its options
        _check_game(game, self.network.form)
        if self.minutes is not None and self.iterations is not None:
            raise ValueError(
                "only one of minutes and iterations can be given: "
                f"minutes={self.minutes}, iterations={self.iterations}"
            )
        if self.minutes is None and self.iterations is None:
            object.__setattr__(self, "minutes", DEFAULT_MINUTES)
        check_length(self.minutes, self.iterations)
        as_run_directory(self.run_dir or "")
        check_seed("seed", self.seed)
        check_choice("learning", self.learning, ("offline", "online"))
        for name in ("games", "moves"):
            check_int(name, getattr(self, name), 1)
        for name in ("first_epsilon", "final_epsilon", "epsilon_fall"):
            check_number(name, getattr(self, name), at_least=0, at_most=1)
        check_number("learning_rate", self.learning_rate, above=0)
        if self.learning == "offline" and self.fit.batch_size > self.batch_moves:
            raise ValueError(
                f"fit.batch_size must be at most games times moves, {self.batch_moves}"
                f": {self.fit.batch_size}"
            )

    @property
    def directory(self) -> Directory:
        """Where everything is written."""
        name = re.sub("[^a-z0-9]+", "_", self.game)
        return as_run_directory(self.run_dir or f"runs/q_{name}")

    @property
    def opponents(self) -> tuple[str, ...]:
        """The players that it is measured against."""
        if self.evaluation.opponents is not None:
            return self.evaluation.opponents
        length = games.make(self.game).max_moves
        depth = length if length <= MAX_FULL_DEPTH else USUAL_DEPTH
        return ("random", f"minimax:{depth}")

    @property
    def batch_moves(self) -> int:
        """Moves in an iteration, all games together."""
        return self.games * self.moves

    def epsilon(self, share: float) -> float:
        """Returns the share of random moves at a share of the run."""
        fallen = min(1.0, share / self.epsilon_fall) if self.epsilon_fall else 1.0
        return self.first_epsilon + fallen * (self.final_epsilon - self.first_epsilon)

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as `json.dumps` takes them."""
        return {"kind": KIND, **dataclasses.asdict(self)}


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
        f"is for small games, of at most {limit}{hint}"
    )
