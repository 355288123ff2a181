"""Training configuration: nested frozen dataclasses."""

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any

from azjax import games
from azjax.checks import check_int, check_number, check_seed
from azjax.networks import NetworkConfig
from azjax.remote import Directory, as_directory, as_run_directory
from azjax.search import MAX_NODES, GumbelConfig, SearchConfig
from azjax.training.targets import horizon

MAX_LENGTH = 10**9  # of a run, minutes or iterations


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """How games are played to learn from.

    Attributes:
        num_games: B, played at once.
        moves_per_chunk: T, moves in each game between two rounds of updates.
        num_simulations: network evaluations a move, besides that of the position
            itself; one number for each of equal parts of the run: `(16, 32, 32)`
            searches less in the first third (AlphaZero: 800).
        initial_position_fraction: share of the games that begin with the initial
            position.
        short_opening_fraction: share that begin after 0 to `short_opening_moves` random
            moves; the rest begins after 0 to `long_opening_moves`.
        short_opening_moves: see above (moves).
        long_opening_moves: see above (moves); cut to three quarters of the longest
            game.
        temperature_moves: moves after the opening with temperature 1: they are drawn
            from the improved policy. After them the temperature is 0: the best move
            found is played (AlphaZero: 30 in chess).
        full_search_fraction: share of the moves that are searched with
            `num_simulations`, chosen at random at each move; the rest is searched with
            `fast_simulations`, without exploring, and only its results are learnt
            from, not its policies: more games for the same time (playout cap
            randomisation, Wu 2019, "Accelerating Self-Play Learning in Go", section
            3.1; there 0.25).
        fast_simulations: see above; not used if all searches are full.
    """

    num_games: int = 256
    moves_per_chunk: int = 32
    num_simulations: tuple[int, ...] = (16, 32, 32, 32, 32)
    initial_position_fraction: float = 0.25
    short_opening_fraction: float = 0.4
    short_opening_moves: int = 12
    long_opening_moves: int = 30
    temperature_moves: int = 8
    full_search_fraction: float = 1.0
    fast_simulations: int = 8

    def __post_init__(self) -> None:
        """Checks the values."""
        for name, low in (
            ("num_games", 1),
            ("moves_per_chunk", 2),
            ("short_opening_moves", 0),
            ("long_opening_moves", 0),
            ("temperature_moves", 0),
            ("fast_simulations", 1),
        ):
            check_int(f"self_play.{name}", getattr(self, name), low)
        fraction = self.full_search_fraction
        check_number("self_play.full_search_fraction", fraction, above=0, at_most=1)
        for name in ("initial_position_fraction", "short_opening_fraction"):
            value = getattr(self, name)
            check_number(f"self_play.{name}", value, at_least=0, at_most=1)
        if self.initial_position_fraction + self.short_opening_fraction > 1:
            raise ValueError(
                "self_play.initial_position_fraction + "
                "self_play.short_opening_fraction must be <= 1: "
                f"{self.initial_position_fraction} + {self.short_opening_fraction}"
            )
        if not self.num_simulations:
            raise ValueError("self_play.num_simulations must be one or more numbers")
        for simulations in self.num_simulations:
            check_int("self_play.num_simulations", simulations, 1, MAX_NODES)
        if self.full_search_fraction < 1 and self.fast_simulations > max(
            self.num_simulations
        ):
            raise ValueError(
                "self_play.fast_simulations must be at most self_play.num_simulations "
                f"({max(self.num_simulations)}), or the fast searches are the slow "
                f"ones: {self.fast_simulations}"
            )

    def full_games_of(self, num_games: int) -> int:
        """Of so many games, those whose move is searched with `num_simulations`."""
        return max(1, round(self.full_search_fraction * num_games))

    def simulations_at(self, share: float) -> int:
        """The simulations of a full search at a share of the run, in [0, 1]."""
        stage = int(share * len(self.num_simulations))
        return self.num_simulations[min(stage, len(self.num_simulations) - 1)]

    @property
    def longest_search(self) -> int:
        """The simulations of the longest search of the run."""
        return max(self.num_simulations)


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Which positions are learnt from.

    Attributes:
        capacity: positions kept at most.
        window: share of all positions so far from which batches are drawn, the newest
            ones.
        min_window: but never fewer than this many (positions); every position must
            stay until it can be drawn, or the configuration is refused.
        min_positions: collected before the first update (positions).
        policy_entries: K, the largest entries of each policy that are stored; all are,
            where that takes no more memory.
    """

    capacity: int = 524_288
    window: float = 0.5
    min_window: int = 65_536
    min_positions: int = 16_384
    policy_entries: int = 64

    def __post_init__(self) -> None:
        """Checks the values."""
        for name, low in (
            ("capacity", 1),
            ("min_window", 1),
            ("min_positions", 0),
            ("policy_entries", 1),
        ):
            check_int(f"replay.{name}", getattr(self, name), low)
        check_number("replay.window", self.window, above=0, at_most=1)


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """How the network learns.

    Attributes:
        batch_size: N, positions an update.
        replay_ratio: times that a position is drawn, on average.
        learning_rate: of AdamW at its highest.
        warmup_fraction: share of the run in which the rate rises to it, from a
            hundredth of it.
        final_lr_fraction: the share of the highest rate that cosine annealing leaves
            at the end.
        weight_decay: of arrays with more than one axis; an update subtracts rate * this
            * the weight.
        max_gradient_norm: longer gradients are scaled down to it.
        ema_decay: decay of the averaged weights, which play and are evaluated, an
            update.
        value_weight: of the value loss against the policy loss (AlphaZero: 1).
        td_lambda: lambda, how far value targets look ahead: 1 is the game's result, 0
            the search's value of the next position.
    """

    batch_size: int = 256
    replay_ratio: float = 4.0
    learning_rate: float = 2e-3
    warmup_fraction: float = 0.02
    final_lr_fraction: float = 0.0
    weight_decay: float = 1e-2
    max_gradient_norm: float = 1.0
    ema_decay: float = 0.998
    value_weight: float = 1.0
    td_lambda: float = 0.8

    def __post_init__(self) -> None:
        """Checks the values."""
        check_int("learner.batch_size", self.batch_size, 1)
        for name in ("weight_decay", "value_weight"):
            check_number(f"learner.{name}", getattr(self, name), at_least=0)
        for name in ("warmup_fraction", "final_lr_fraction", "td_lambda"):
            check_number(f"learner.{name}", getattr(self, name), at_least=0, at_most=1)
        for name in ("replay_ratio", "learning_rate", "max_gradient_norm"):
            check_number(f"learner.{name}", getattr(self, name), above=0)
        check_number("learner.ema_decay", self.ema_decay, at_least=0, below=1)


@dataclasses.dataclass(frozen=True)
class BaseEvaluationConfig:
    """How often and how a run of any algorithm is measured while it lasts.

    Attributes:
        num_evaluations: in the run, evenly spaced; the first network comes in addition.
        num_positions: solved positions graded each time, where the game has any.
        num_games: against each opponent, each time.
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


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(BaseEvaluationConfig):
    """How often and how the run is measured while it lasts.

    Attributes:
        num_simulations: of the search that is graded.
        opponents: players as `azjax.players.load` takes them, whom the network alone,
            without search, plays each time.
    """

    num_simulations: int = 64
    opponents: tuple[str, ...] = ("random",)

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        check_int("evaluation.num_simulations", self.num_simulations, 1, MAX_NODES)
        check_opponents(self.opponents)


def check_opponents(opponents: Sequence[str]) -> None:
    """Checks that no opponent is named twice.

    Raises:
        ValueError: one is.
    """
    for name in opponents:
        if opponents.count(name) > 1:
            raise ValueError(f"evaluation.opponents has {name!r} twice")


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """How often the run is saved, beside at its end.

    Attributes:
        every_minutes: between two checkpoints, in a run measured in minutes or not.
        keep: the newest checkpoints kept, beside the best.
    """

    every_minutes: float = 2.0
    keep: int = 2

    def __post_init__(self) -> None:
        """Checks the values."""
        check_number("checkpoint.every_minutes", self.every_minutes, at_least=0)
        check_int("checkpoint.keep", self.keep, 1)


def check_length(minutes: object, iterations: object) -> None:
    """Checks how long a run lasts; None is not looked at.

    Raises:
        ValueError: it is no number, or not allowed.
    """
    if minutes is not None:
        check_number("minutes", minutes, above=0, at_most=MAX_LENGTH)
    if iterations is not None:
        check_int("iterations", iterations, 1, MAX_LENGTH)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Attributes:
        game: what `azjax.games.make` takes, for example `connect_four`.
        minutes: how long the run lasts, compilation and evaluation included.
        iterations: how long the run lasts instead, in chunks of self-play with their
            updates. Exactly one of the two is given.
        plan: directory of a run that is made again: its plan says which share of this
            run is over after each iteration; `azjax.training.repeated_config` gives the
            settings.
        seed: of all chance in the run.
        num_lanes: L, the equal parts of games, replay and batches, spread over the
            devices; a multiple of their number, and a divisor of
            `self_play.num_games` and `learner.batch_size`. Another one is another run.
        exact_lanes: whether a device computes one lane after another, so that the run
            is the same bit for bit on any number of devices; else up to rounding.
        run_dir: where everything is written, `runs/GAME` by default; a directory of
            this machine, or `gs://BUCKET/RUN`.
        initial_player: directory of a run or a player for the same game and of the same
            `network`, whose weights the run begins with, or `pretrained`; `azjax train`
            takes it as `--from` too.
        notes: free text that is kept in `config.json`; it may change when the run is
            continued.
    """

    game: str = "connect_four"
    minutes: float | None = None
    iterations: int | None = None
    plan: str | None = None
    seed: int = 0
    num_lanes: int = 8
    exact_lanes: bool = False
    run_dir: str | None = None
    initial_player: str | None = None
    notes: str = ""
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=GumbelConfig)
    self_play: SelfPlayConfig = SelfPlayConfig()
    replay: ReplayConfig = ReplayConfig()
    learner: LearnerConfig = LearnerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()

    def __post_init__(self) -> None:
        """Checks the values."""
        # One spelling of its options: `hex:5`.
        object.__setattr__(self, "game", repr(games.make(self.game)))
        if (self.minutes is None) == (self.iterations is None):
            raise ValueError(
                "exactly one of minutes and iterations must be given: "
                f"minutes={self.minutes}, iterations={self.iterations}"
            )
        check_length(self.minutes, self.iterations)
        as_run_directory(self.run_dir or "")
        for source in (self.plan, self.initial_player):
            as_directory(source or "")
        if self.plan is not None and self.iterations is None:
            raise ValueError("with a plan, iterations must be given, its last one")
        check_seed("seed", self.seed)
        check_int("num_lanes", self.num_lanes, 1)
        for name, number in (
            ("self_play.num_games", self.self_play.num_games),
            ("learner.batch_size", self.learner.batch_size),
        ):
            if number % self.num_lanes:
                raise ValueError(
                    f"{name} must be a multiple of num_lanes, {self.num_lanes}: "
                    f"{number}"
                )
        self.check_replay(self._horizon)

    def check_replay(self, horizon: int) -> None:
        """Checks that every position stays in the replay until it can be sampled.

        Args:
            horizon: moves that follow it until its value target is accepted.

        Raises:
            ValueError: the replay or its window is too small, or the horizon is no
                whole number from 1.
        """
        check_int("horizon", horizon, 1)
        short = [
            f"replay.{name} must be >= {low}: {getattr(self.replay, name)}"
            for name, low in self._least_replay(horizon).items()
            if getattr(self.replay, name) < low
        ]
        if short:
            _, reason = self._least_window(horizon)
            raise ValueError(
                f"{', and '.join(short)}; for a position can be drawn only once "
                f"{reason}"
            )

    @property
    def least_replay(self) -> dict[str, int]:
        """The least `capacity` and `min_window` of the replay (positions), with which
        no position leaves before it could be drawn."""
        return self._least_replay(self._horizon)

    @property
    def _horizon(self) -> int:
        return horizon(self.learner.td_lambda, games.make(self.game).max_moves)

    def _least_replay(self, horizon: int) -> dict[str, int]:
        moves, _ = self._least_window(horizon)
        chunks = math.ceil(moves / self.self_play.moves_per_chunk)
        return {
            "capacity": chunks * self.chunk_positions,
            "min_window": moves * self.self_play.num_games,
        }

    def _least_window(self, horizon: int) -> tuple[int, str]:
        """Returns the moves for which a position must stay, and until when that is.

        What is eligible is decided after each chunk, from the first update on.
        """
        is_lambda = horizon == self._horizon
        source = f" (learner.td_lambda {self.learner.td_lambda})" if is_lambda else ""
        chunk_moves = self.self_play.moves_per_chunk
        min_positions = self.replay.min_positions
        before_updates = max(1, math.ceil(min_positions / self.chunk_positions))
        return max(
            (
                horizon + chunk_moves,
                f"its game has ended or {horizon} moves have followed{source} at the "
                "end of a chunk",
            ),
            (
                before_updates * chunk_moves,
                f"updates have begun (replay.min_positions {min_positions})",
            ),
        )

    @property
    def directory(self) -> Directory:
        """Where everything is written."""
        name = re.sub("[^a-z0-9]+", "_", self.game)
        return as_run_directory(self.run_dir or f"runs/{name}")

    @property
    def chunk_positions(self) -> int:
        """Positions in one chunk of self-play."""
        return self.self_play.num_games * self.self_play.moves_per_chunk

    @property
    def replay_chunks(self) -> int:
        """Chunks that the replay holds."""
        return self.replay.capacity // self.chunk_positions

    def window_moves(self, iteration: int) -> int:
        """The newest moves of each slot that can be drawn after so many iterations."""
        positions = max(
            self.replay.min_window,
            self.replay.window * iteration * self.chunk_positions,
        )
        return int(min(positions, self.replay.capacity)) // self.self_play.num_games

    @property
    def updates_per_iteration(self) -> int:
        """Updates after each chunk of self-play."""
        drawn = self.learner.replay_ratio * self.chunk_positions
        return max(1, round(drawn / self.learner.batch_size))

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as `json.dumps` takes them."""
        nested = {"network": self.network.to_json(), "search": self.search.to_json()}
        return dataclasses.asdict(self) | nested
