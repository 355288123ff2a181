"""Settings of training runs: nested frozen dataclasses."""

import dataclasses
import math
import re
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from azjax import games
from azjax.files import Directory, as_directory, as_run_directory
from azjax.networks import NetworkConfig, QNetworkConfig
from azjax.players.serialization import Q_LEARNING
from azjax.search import MAX_NODES, GumbelConfig, SearchConfig
from azjax.settings import Distinct, Fraction, Seed, Settings, Within, check_int

MAX_LENGTH = 10**9  # of a run, minutes or iterations
SELF = "self"  # the opponent of Q-learning that learns too
DEFAULT_MINUTES = 2.0  # of Q-learning
# Limits on the actions of a game of Q-learning, by the form of the network: `pair`
# evaluates every action as a row of the batch.
MAX_Q_ACTIONS = {"pair": 128, "state": 512}
# Depths of the default minimax opponent of Q-learning (moves).
MAX_FULL_DEPTH = 9
USUAL_DEPTH = 4
NEGLIGIBLE = 1e-3  # maximum weight of the bootstrap value in a lambda-return

Minutes = Annotated[float | None, Within(gt=0, le=MAX_LENGTH)]
Iterations = Annotated[int | None, Within(1, MAX_LENGTH)]
Simulations = Annotated[tuple[int, ...], Within(1, MAX_NODES)]


def horizon(td_lambda: float, max_moves: int) -> int:
    """Returns the number of moves after which the rest of a game has a weight below
    `NEGLIGIBLE` in a lambda-return.

    Args:
        td_lambda: lambda.
        max_moves: of the longest game; upper bound of the result.
    """
    if td_lambda == 0:
        return 1
    if td_lambda == 1:
        return max_moves
    moves = math.floor(math.log(NEGLIGIBLE) / math.log(td_lambda)) + 1
    return min(moves, max_moves)


# Settings of both algorithms


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

    sinks: Annotated[tuple[Literal["wandb", "mlflow"], ...], Distinct()] = ()


# AlphaZero


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig(Settings):
    """Self-play settings.

    Attributes:
        num_games: B, games played at once.
        moves_per_chunk: T, moves in each game per iteration.
        num_simulations: simulations of a full search; with n numbers, the i-th is used
            in the i-th n-th of the run: `(16, 32, 32)` uses 16 in the first third
            (AlphaZero: 800).
        initial_position_fraction: fraction of the games that start from the initial
            position.
        short_opening_fraction: fraction that starts after 0 to `short_opening_moves`
            random moves; the rest starts after 0 to `long_opening_moves`.
        short_opening_moves: see above (moves).
        long_opening_moves: see above (moves); at most three quarters of the longest
            game.
        temperature_moves: moves after the opening that are sampled from the improved
            policy (temperature 1); later moves are the search's best move (AlphaZero:
            30 in chess).
        full_search_fraction: fraction of the moves, chosen at random, that get a full
            search. The others get a fast search without exploration and train the value
            head only (playout cap randomization, Wu 2019, "Accelerating Self-Play
            Learning in Go", section 3.1; 0.25 there).
        fast_simulations: network evaluations of a fast search; unused if
            `full_search_fraction` is 1.
    """

    section: ClassVar[str] = "self_play."

    num_games: Annotated[int, Within(ge=1)] = 256
    moves_per_chunk: Annotated[int, Within(ge=2)] = 32
    num_simulations: Simulations = (16, 32, 32, 32, 32)
    initial_position_fraction: Fraction = 0.25
    short_opening_fraction: Fraction = 0.4
    short_opening_moves: Annotated[int, Within(ge=0)] = 12
    long_opening_moves: Annotated[int, Within(ge=0)] = 30
    temperature_moves: Annotated[int, Within(ge=0)] = 8
    full_search_fraction: Annotated[float, Within(gt=0, le=1)] = 1.0
    fast_simulations: Annotated[int, Within(ge=1)] = 8

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.initial_position_fraction + self.short_opening_fraction > 1:
            raise ValueError(
                "self_play.initial_position_fraction + "
                "self_play.short_opening_fraction must be <= 1: "
                f"{self.initial_position_fraction} + {self.short_opening_fraction}"
            )
        if not self.num_simulations:
            raise ValueError("self_play.num_simulations must be one or more numbers")
        if self.full_search_fraction < 1 and self.fast_simulations > max(
            self.num_simulations
        ):
            raise ValueError(
                "self_play.fast_simulations must not exceed self_play.num_simulations, "
                f"{max(self.num_simulations)}: {self.fast_simulations}"
            )

    def full_games_of(self, num_games: int) -> int:
        """Returns how many of `num_games` games get a full search at a move."""
        return max(1, round(self.full_search_fraction * num_games))

    def simulations_at(self, progress: float) -> int:
        """Returns the simulations of a full search at a fraction of the run in [0,
        1]."""
        stage = int(progress * len(self.num_simulations))
        return self.num_simulations[min(stage, len(self.num_simulations) - 1)]

    @property
    def longest_search(self) -> int:
        """Simulations of the longest search of the run."""
        return max(self.num_simulations)


@dataclasses.dataclass(frozen=True)
class ReplayConfig(Settings):
    """Replay settings.

    Attributes:
        capacity: maximum number of stored positions.
        window: fraction of all positions so far that batches are sampled from, the
            newest ones.
        min_window: minimum size of the window (positions). A configuration in which a
            position would leave the replay before it becomes eligible is rejected.
        min_positions: positions collected before the first update.
        policy_entries: K, largest entries of each policy that are stored; all entries
            are stored where that takes no more memory.
    """

    section: ClassVar[str] = "replay."

    capacity: Annotated[int, Within(1, 2**53)] = 524_288
    window: Annotated[float, Within(gt=0, le=1)] = 0.5
    min_window: Annotated[int, Within(1, 2**53)] = 65_536
    min_positions: Annotated[int, Within(0, 2**53)] = 16_384
    policy_entries: Annotated[int, Within(1, 2**53)] = 64


@dataclasses.dataclass(frozen=True)
class LearnerConfig(Settings):
    """Learner settings.

    Attributes:
        batch_size: N, positions per update.
        replay_ratio: expected number of times each position is sampled.
        learning_rate: peak learning rate of AdamW.
        warmup_fraction: fraction of the run in which the rate rises linearly to its
            peak, from a hundredth of it.
        final_lr_fraction: final learning rate of the cosine schedule, as a fraction of
            the peak.
        weight_decay: of arrays with more than one axis; an update subtracts rate * this
            * the weight.
        max_gradient_norm: norm at which gradients are clipped.
        ema_decay: decay per update of the averaged weights, which are used in play and
            evaluation.
        value_weight: weight of the value loss relative to the policy loss (AlphaZero:
            1).
        owners_weight: weight of the losses of two more heads, which predict the owner
            of each cell at the end of the game and the margin, in training only; for
            games that are decided by territory (Wu 2019, "Accelerating Self-Play
            Learning in Go", section 4.1; 0: without these heads).
        td_lambda: lambda of the lambda-return (1: game result, 0: next search value).
        max_regret: a move that the search values more than this below its best move
            does not count in the value targets of earlier positions (0: only best moves
            count, 2: all).
    """

    section: ClassVar[str] = "learner."

    batch_size: Annotated[int, Within(ge=1)] = 256
    replay_ratio: Annotated[float, Within(gt=0, le=10**6)] = 4.0
    learning_rate: Annotated[float, Within(gt=0)] = 2e-3
    warmup_fraction: Fraction = 0.02
    final_lr_fraction: Fraction = 0.0
    weight_decay: Annotated[float, Within(ge=0)] = 1e-2
    max_gradient_norm: Annotated[float, Within(gt=0)] = 1.0
    ema_decay: Annotated[float, Within(ge=0, lt=1)] = 0.998
    value_weight: Annotated[float, Within(ge=0)] = 1.0
    owners_weight: Annotated[float, Within(ge=0)] = 0.0
    td_lambda: Fraction = 0.8
    max_regret: Annotated[float, Within(0, 2)] = 0.0


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(BaseEvaluationConfig):
    """Evaluation settings.

    Attributes:
        num_simulations: simulations of the evaluated search.
        opponents: player specs, as `azjax.players.load` takes them; the network without
            search plays a match against each.
    """

    num_simulations: Annotated[int, Within(1, MAX_NODES)] = 64
    opponents: Annotated[tuple[str, ...], Distinct()] = ("random",)


@dataclasses.dataclass(frozen=True)
class TrainConfig(Settings):
    """Settings of a training run.

    Attributes:
        game: game spec, as `azjax.games.make` takes it, for example `connect_four`.
        minutes: length of the run, evaluation included, compilation not.
        iterations: length of the run in iterations; exactly one of the two is given.
        repeat_schedule: directory of a run to reproduce: its schedule gives the
            fraction of the run that is done after
            each iteration; `azjax.training.repeated_config` returns the settings.
        seed: seed of all random numbers.
        num_lanes: L, equal parts of games, replay and batches, spread over the devices;
            a multiple of the number of devices, and a divisor of `self_play.num_games`
            and `learner.batch_size`. It changes the results.
        exact_lanes: compute the lanes of a device one by one, so that any number of
            devices gives bit for bit the same run; otherwise the same up to rounding.
        run_dir: run directory, local or `gs://BUCKET/RUN`; `runs/GAME` by default.
        initial_player: initial weights: the directory of a run or a player for the same
            game with the same `network`, or `pretrained`; `--from` of `azjax train`.
            With `network.heads` of `board` the options of the game may differ, such as
            the size of the board, if the network has the same shapes.
        learn_from: directories of runs that kept their games, or of imported games; if
            given, the run learns from these in place of self-play, or of a part of it.
        stored_fraction: fraction of the B slots that hold stored games if `learn_from`
            is given, rounded to the same whole number of slots in each lane; self-play
            plays in the other slots (1: only stored games).
        notes: free text in `config.json` and on the model card; may change when the run
            continues.
    """

    game: str = "connect_four"
    minutes: Minutes = None
    iterations: Iterations = None
    repeat_schedule: str | None = None
    seed: Seed = 0
    num_lanes: Annotated[int, Within(ge=1)] = 8
    exact_lanes: bool = False
    run_dir: str | None = None
    initial_player: str | None = None
    learn_from: tuple[str, ...] = ()
    stored_fraction: Annotated[float, Within(gt=0, le=1)] = 1.0
    notes: str = ""
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=GumbelConfig)
    self_play: SelfPlayConfig = SelfPlayConfig()
    replay: ReplayConfig = ReplayConfig()
    learner: LearnerConfig = LearnerConfig()
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    report: ReportConfig = dataclasses.field(default_factory=ReportConfig)

    def __post_init__(self) -> None:
        """Checks the values."""
        # Canonical spelling of the options: `hex:5`.
        object.__setattr__(self, "game", repr(games.make(self.game)))
        if (self.minutes is None) == (self.iterations is None):
            raise ValueError(
                "exactly one of minutes and iterations must be given: "
                f"minutes={self.minutes}, iterations={self.iterations}"
            )
        super().__post_init__()
        as_run_directory(self.run_dir or "")
        for source in (self.repeat_schedule, self.initial_player, *self.learn_from):
            as_directory(source or "")
        if self.repeat_schedule is not None and self.iterations is None:
            raise ValueError(
                "iterations must be given with repeat_schedule: its last iteration"
            )
        if not isinstance(self.search, SearchConfig):
            raise ValueError(
                "search must be the settings of a search, such as GumbelConfig(): "
                f"{self.search!r}"
            )
        # Every lane has as many games, and positions of a batch, as any other.
        for name, number in (
            ("self_play.num_games", self.self_play.num_games),
            ("learner.batch_size", self.learner.batch_size),
        ):
            if number % self.num_lanes:
                raise ValueError(
                    f"{name} must be a multiple of num_lanes, {self.num_lanes}: "
                    f"{number}"
                )
        # Of stored games and self-play, a run has one kind, or each lane has both.
        fraction = self.stored_fraction
        if fraction < 1 and not self.learn_from:
            raise ValueError(
                f"stored_fraction must be 1 without learn_from: {fraction}"
            )
        lane_slots = self.self_play.num_games // self.num_lanes
        stored = self.stored_slots // self.num_lanes
        if fraction < 1 and not 0 < stored < lane_slots:
            raise ValueError(
                "stored_fraction must be 1, or give a part of the slots of each lane "
                f"to stored games and a part to self-play: {fraction} of {lane_slots} "
                f"(self_play.num_games / num_lanes) is {stored}"
            )
        self.check_replay()

    def check_replay(self, horizon: int | None = None) -> None:
        """Checks that every position stays in the replay until it can be sampled.

        Args:
            horizon: moves after which the position of an unfinished game becomes
                eligible; by default that of `learner.td_lambda`.

        Raises:
            ValueError: the replay is too large, it or its window is too small, or the
                horizon is not a positive integer.
        """
        # The moves of a slot have int32 numbers.
        most = 2**31 * self.self_play.num_games - 1
        check_int("replay.capacity", self.replay.capacity, 1, most)
        least, reason = self.least_replay(horizon)
        short = [
            f"replay.{name} must be >= {low}: {getattr(self.replay, name)}"
            for name, low in least.items()
            if getattr(self.replay, name) < low
        ]
        if short:
            raise ValueError(
                f"{', and '.join(short)}; a position can be sampled only once {reason}"
            )

    def least_replay(self, eligible: int | None = None) -> tuple[dict[str, int], str]:
        """Returns the minimum `capacity` and `min_window` of the replay (positions)
        with which every position becomes eligible before it is overwritten, and the
        reason; `eligible` is the horizon of `check_replay`."""
        source = ""
        if eligible is None:
            source = f" (learner.td_lambda {self.learner.td_lambda})"
            max_moves = games.make(self.game).max_moves
            eligible = horizon(self.learner.td_lambda, max_moves)
        check_int("horizon", eligible, 1)
        # Eligibility is decided after each chunk, from the first update on.
        chunk_moves = self.self_play.moves_per_chunk
        min_positions = self.replay.min_positions
        before_updates = max(1, math.ceil(min_positions / self.chunk_positions))
        moves, reason = max(
            (
                eligible + chunk_moves,
                f"its game has ended or {eligible} moves have followed{source} at the "
                "end of a chunk",
            ),
            (
                before_updates * chunk_moves,
                f"updates have begun (replay.min_positions {min_positions})",
            ),
        )
        least = {
            "capacity": math.ceil(moves / chunk_moves) * self.chunk_positions,
            "min_window": moves * self.self_play.num_games,
        }
        return least, reason

    @property
    def directory(self) -> Directory:
        """The run directory."""
        name = re.sub("[^a-z0-9]+", "_", self.game)
        return as_run_directory(self.run_dir or f"runs/{name}")

    @property
    def stored_slots(self) -> int:
        """Number of the B slots that hold stored games, those of all lanes."""
        if not self.learn_from:
            return 0
        lane_slots = self.self_play.num_games // self.num_lanes
        return self.num_lanes * round(self.stored_fraction * lane_slots)

    @property
    def played_slots(self) -> int:
        """Number of the B slots in which self-play plays, those of all lanes."""
        return self.self_play.num_games - self.stored_slots

    @property
    def chunk_positions(self) -> int:
        """Positions of a chunk, the moves of one iteration in all games."""
        return self.self_play.num_games * self.self_play.moves_per_chunk

    @property
    def replay_chunks(self) -> int:
        """Number of chunks that the replay holds."""
        return self.replay.capacity // self.chunk_positions

    def window_moves(self, iteration: int) -> int:
        """Returns the length of the window in moves of each slot, after `iteration`
        iterations."""
        positions = max(
            self.replay.min_window,
            self.replay.window * iteration * self.chunk_positions,
        )
        return int(min(positions, self.replay.capacity)) // self.self_play.num_games

    @property
    def updates_per_iteration(self) -> int:
        """Updates after each chunk of self-play."""
        sampled = self.learner.replay_ratio * self.chunk_positions
        return max(1, round(sampled / self.learner.batch_size))


# Q-learning


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
            and `minimax`, whose depth is the whole game if it has at most 9 moves, and
            otherwise 4.
    """

    num_evaluations: Annotated[int, Within(ge=1)] = 10
    num_games: Annotated[int, Within(ge=2)] = 200
    opponents: Annotated[tuple[str, ...] | None, Distinct()] = None


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
        form = self.network.form
        if game.num_actions > MAX_Q_ACTIONS[form]:
            fits = form == "pair" and game.num_actions <= MAX_Q_ACTIONS["state"]
            hint = "; network.form=state takes more" if fits else ""
            raise ValueError(
                f"{game!r} has {game.num_actions} actions; Q-learning with "
                f"network.form={form} takes at most {MAX_Q_ACTIONS[form]}{hint}"
            )
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

    def epsilon(self, progress: float) -> float:
        """Returns the fraction of random moves at a fraction of the run."""
        fallen = min(1.0, progress / self.epsilon_fall) if self.epsilon_fall else 1.0
        return self.first_epsilon + fallen * (self.final_epsilon - self.first_epsilon)

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values."""
        return {"kind": Q_LEARNING, **super().to_json()}


RunConfig: TypeAlias = TrainConfig | QConfig
