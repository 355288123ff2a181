import dataclasses
import json
import math
import pathlib

import pytest

from azjax.networks import QNetworkConfig
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    preset,
)
from azjax.training.config import FitConfig, QConfig, QEvaluationConfig

INF, NAN = math.inf, math.nan
# A setting, a value, and the values that its error says are allowed.
ALLOWED = [
    (SelfPlayConfig, "num_games", 0, "an int >= 1"),
    (SelfPlayConfig, "moves_per_chunk", 1, "an int >= 2"),
    (SelfPlayConfig, "initial_position_fraction", 1.5, "a number from 0 to 1"),
    (SelfPlayConfig, "short_opening_fraction", NAN, "a number from 0 to 1"),
    (SelfPlayConfig, "short_opening_moves", -1, "an int >= 0"),
    (SelfPlayConfig, "long_opening_moves", -1, "an int >= 0"),
    (SelfPlayConfig, "temperature_moves", -1, "an int >= 0"),
    (SelfPlayConfig, "full_search_fraction", 0.0, "a number > 0 and <= 1"),
    (SelfPlayConfig, "full_search_fraction", 1.1, "a number > 0 and <= 1"),
    (SelfPlayConfig, "full_search_fraction", NAN, "a number > 0 and <= 1"),
    (SelfPlayConfig, "fast_simulations", 0, "an int >= 1"),
    (ReplayConfig, "capacity", 0, "an int >= 1"),
    (ReplayConfig, "window", 0.0, "a number > 0 and <= 1"),
    (ReplayConfig, "window", 1.1, "a number > 0 and <= 1"),
    (ReplayConfig, "min_window", 0, "an int >= 1"),
    (ReplayConfig, "policy_entries", 0, "an int >= 1"),
    (ReplayConfig, "min_positions", -1, "an int >= 0"),
    (ReplayConfig, "min_positions", 10**70, f"an int >= 0 and <= {2**53}"),
    (SelfPlayConfig, "temperature_moves", 10**70, f"an int >= 0 and <= {2**31 - 1}"),
    (LearnerConfig, "batch_size", 0, "an int >= 1"),
    (LearnerConfig, "replay_ratio", 0.0, "a number > 0 and <= 1000000"),
    (LearnerConfig, "replay_ratio", INF, "a number > 0 and <= 1000000"),
    (LearnerConfig, "replay_ratio", 1e308, "a number > 0 and <= 1000000"),
    (LearnerConfig, "learning_rate", -1.0, "a finite number > 0"),
    (LearnerConfig, "learning_rate", NAN, "a finite number > 0"),
    (LearnerConfig, "warmup_fraction", 2.0, "a number from 0 to 1"),
    (LearnerConfig, "final_lr_fraction", -0.1, "a number from 0 to 1"),
    (LearnerConfig, "weight_decay", -1.0, "a finite number >= 0"),
    (LearnerConfig, "max_gradient_norm", 0.0, "a finite number > 0"),
    (LearnerConfig, "ema_decay", 1.0, "a number >= 0 and < 1"),
    (LearnerConfig, "value_weight", -1.0, "a finite number >= 0"),
    (LearnerConfig, "td_lambda", 1.01, "a number from 0 to 1"),
    (EvaluationConfig, "num_evaluations", 0, "an int >= 1"),
    (EvaluationConfig, "num_positions", 0, "an int >= 1"),
    (EvaluationConfig, "num_simulations", 0, "an int from 1 to 10000000"),
    (EvaluationConfig, "num_games", 0, "an int >= 2"),
    (EvaluationConfig, "num_games", 3, "even"),
    (CheckpointConfig, "every_minutes", -1.0, "a finite number >= 0"),
    (CheckpointConfig, "keep", 0, "an int >= 1"),
    (TrainConfig, "iterations", 2.5, "an int from 1 to 1000000000"),
    (TrainConfig, "iterations", True, "an int from 1 to 1000000000"),
    (TrainConfig, "iterations", 10**20, "an int from 1 to 1000000000"),
    (TrainConfig, "iterations", 0, "an int from 1 to 1000000000"),
    (TrainConfig, "minutes", "5", "a number > 0 and <= 1000000000"),
    (TrainConfig, "minutes", 0.0, "a number > 0 and <= 1000000000"),
    (TrainConfig, "minutes", NAN, "a number > 0 and <= 1000000000"),
]


@pytest.mark.parametrize(("kind", "name", "value", "allowed"), ALLOWED)
def test_the_error_of_an_invalid_value_names_the_allowed_ones(
    kind, name, value, allowed
):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        kind(**{name: value})
    assert str(error.value) == f"{kind.section}{name} must be {allowed}: {value!r}"


PLAY = SelfPlayConfig(num_games=8, moves_per_chunk=4)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (
            SelfPlayConfig,
            {"num_simulations": ()},
            "num_simulations must be one or more",
        ),
        (
            SelfPlayConfig,
            {"num_simulations": (4, 0)},
            "num_simulations must be an int from 1 to 10000000: 0",
        ),
        (
            SelfPlayConfig,
            {"initial_position_fraction": 0.6, "short_opening_fraction": 0.6},
            "self_play.initial_position_fraction + self_play.short_opening_fraction "
            "must be <= 1: 0.6 + 0.6",
        ),
        (
            EvaluationConfig,
            {"opponents": ("random", "random")},
            "evaluation.opponents has 'random' twice",
        ),
        (
            TrainConfig,
            {"iterations": None},
            "exactly one of minutes and iterations must be given",
        ),
        (
            TrainConfig,
            {"minutes": 1.0},
            "minutes and iterations must be given: minutes=1.0, iterations=1",
        ),
        (TrainConfig, {"seed": -1}, "seed must be an int from 0 to 2**32 - 1: -1"),
        (TrainConfig, {"seed": 2**32}, "seed must be an int from 0 to 2**32 - 1"),
        (TrainConfig, {"game": "nim"}, "unknown game 'nim'; known games:"),
        (
            TrainConfig,
            {
                "self_play": PLAY,
                "replay": ReplayConfig(capacity=287, min_window=280, min_positions=0),
            },
            "replay.capacity must be >= 288: 287; a position can be sampled only once "
            "its game has ended or 31 moves have followed (learner.td_lambda 0.8)",
        ),
        (
            TrainConfig,
            {"self_play": PLAY, "replay": ReplayConfig(capacity=2**34)},
            "replay.capacity must be an int >= 1 and <= 17179869183: 17179869184",
        ),
        (
            TrainConfig,
            {
                "self_play": PLAY,
                "replay": ReplayConfig(min_window=279, min_positions=0),
            },
            "replay.min_window must be >= 280: 279",
        ),
        (
            TrainConfig,
            {
                "game": "chess",
                "self_play": SelfPlayConfig(num_games=4096),
                "learner": LearnerConfig(td_lambda=1.0),
                "replay": ReplayConfig(capacity=2**21, min_window=2**19),
            },
            "replay.capacity must be >= 2228224: 2097152, and replay.min_window must "
            "be >= 2228224: 524288; a position can be sampled only once its game has "
            "ended or 512 moves have followed (learner.td_lambda 1.0)",
        ),
        (
            TrainConfig,
            {"replay": ReplayConfig(min_positions=65_537)},
            "replay.min_window must be >= 73728: 65536; a position can be sampled only "
            "once updates have begun (replay.min_positions 65537)",
        ),
    ],
)
def test_values_that_do_not_fit_together_are_refused_in_one_line(kind, values, message):
    if kind is TrainConfig:
        values = {"iterations": 1} | values
    with pytest.raises(ValueError) as error:  # noqa: PT011
        kind(**values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_limits_are_inclusive():
    SelfPlayConfig(
        num_games=1,
        moves_per_chunk=2,
        num_simulations=(1,),
        initial_position_fraction=0,
        short_opening_fraction=1,
    )
    ReplayConfig(capacity=1, window=1, min_window=1, min_positions=0, policy_entries=1)
    LearnerConfig(
        batch_size=1, warmup_fraction=1, final_lr_fraction=1, ema_decay=0, td_lambda=0
    )
    EvaluationConfig(num_evaluations=1, num_positions=1, num_simulations=1, num_games=2)
    CheckpointConfig(every_minutes=0, keep=1)
    TrainConfig(minutes=0.1, seed=2**32 - 1)


def test_derived_properties_match_the_settings():
    config = dataclasses.replace(
        preset("cpu", iterations=1),
        self_play=SelfPlayConfig(num_games=8, moves_per_chunk=4),
        replay=ReplayConfig(capacity=300, min_positions=0),
        learner=LearnerConfig(batch_size=16, replay_ratio=3.0),
    )
    assert config.chunk_positions == 32
    assert config.replay_chunks == 9
    assert config.updates_per_iteration == 6


@pytest.mark.parametrize(
    ("share", "games", "full"),
    [(1.0, 8, 8), (0.25, 8, 2), (0.3, 8, 2), (0.001, 8, 1), (0.5, 1, 1)],
)
def test_at_least_one_game_gets_a_full_search(share, games, full):
    config = SelfPlayConfig(num_games=games, full_search_fraction=share)
    assert config.full_games_of(config.num_games) == full


@pytest.mark.parametrize("game", ["hex:3", "hex:size=3", "hex:3,swap=false"])
def test_the_run_directory_does_not_depend_on_the_spelling_of_the_game(game):
    config = TrainConfig(game=game, iterations=1)
    assert config.game == "hex:3"
    assert config.directory == pathlib.Path("runs/hex_3")


PAIR = QNetworkConfig(form="pair")


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (QConfig, {"game": "nim"}, "unknown game 'nim'"),
        (QConfig, {"minutes": 0.0}, "minutes must be a number > 0 and <= 10+: 0.0"),
        (QConfig, {"minutes": math.inf}, "minutes must be a number > 0 .* 10+: inf"),
        (QConfig, {"iterations": 0}, "iterations must be an int from 1 to 10+: 0"),
        (QConfig, {"minutes": 1.0, "iterations": 1}, "only one of minutes and iterat"),
        (QConfig, {"seed": -1}, "seed must be an int from 0"),
        (QConfig, {"learning": "both"}, "learning must be offline or online: 'both'"),
        (QConfig, {"games": 0}, "games must be an int >= 1: 0"),
        (QConfig, {"moves": 0}, "moves must be an int >= 1: 0"),
        (QConfig, {"final_epsilon": 1.5}, "final_epsilon must .* from 0 to 1: 1.5"),
        (QConfig, {"learning_rate": 0.0}, "learning_rate must be a finite .* > 0: 0.0"),
        (QConfig, {"games": 2, "moves": 2}, "fit.batch_size must be at most .* 4: 256"),
        (FitConfig, {"sweeps": 0}, "fit.sweeps must be an int >= 1: 0"),
        (FitConfig, {"batch_size": 0}, "fit.batch_size must be an int >= 1: 0"),
        (FitConfig, {"max_epochs": 0}, "fit.max_epochs must be an int >= 1: 0"),
        (FitConfig, {"low_loss": -1.0}, "fit.low_loss must be a finite .* >= 0: -1.0"),
        (
            QEvaluationConfig,
            {"opponents": ("random", "random")},
            r"evaluation\.opponents has 'random' twice",
        ),
    ],
)
def test_a_wrong_value_of_q_learning_is_named(kind, settings, message):
    if kind is QConfig:
        settings = {"game": "tic_tac_toe"} | settings
    with pytest.raises(ValueError, match=message):
        kind(**settings)


@pytest.mark.parametrize(
    ("game", "network", "message"),
    [
        ("chess", PAIR, "chess.* has 4672 actions; .* at most 128$"),
        ("chess", QNetworkConfig(), "chess.* has 4672 actions; .* at most 512$"),
        ("go:19", PAIR, "at most 128; network.form=state takes more"),
    ],
)
def test_large_games_are_refused_by_q_learning(game, network, message):
    with pytest.raises(ValueError, match=message):
        QConfig(game, network=network)


def test_q_learning_takes_two_minutes_by_default_and_learns_online_from_few_moves():
    assert QConfig("tic_tac_toe").minutes == 2
    assert QConfig("tic_tac_toe", iterations=8).minutes is None
    assert QConfig("tic_tac_toe", learning="online", games=1, moves=2).batch_moves == 2


def test_epsilon_decreases_linearly_and_then_is_constant():
    config = QConfig(
        "tic_tac_toe", first_epsilon=0.9, final_epsilon=0.1, epsilon_fall=0.5
    )
    found = [config.epsilon(share) for share in (0, 0.25, 0.5, 1)]
    assert found == pytest.approx([0.9, 0.5, 0.1, 0.1])
    at_once = dataclasses.replace(config, epsilon_fall=0.0)
    assert at_once.epsilon(0) == pytest.approx(0.1)


def test_minimax_searches_short_games_completely():
    assert QConfig("tic_tac_toe").opponents == ("random", "minimax:9")
    assert QConfig("connect_four").opponents == ("random", "minimax:4")
    evaluation = QEvaluationConfig(opponents=("greedy",))
    assert QConfig("connect_four", evaluation=evaluation).opponents == ("greedy",)


def test_a_run_of_q_learning_has_its_own_directory():
    assert QConfig("go:5").directory == pathlib.Path("runs/q_go_5")
    assert QConfig("go:5", run_dir="x/y").directory == pathlib.Path("x/y")
    # Another spelling of the game gives the same one.
    config = QConfig("hex:size=3")
    assert (config.game, config.directory) == ("hex:3", pathlib.Path("runs/q_hex_3"))


def test_the_json_settings_of_q_learning_contain_the_kind_of_run():
    found = json.loads(json.dumps(QConfig("tic_tac_toe", network=PAIR).to_json()))
    assert found["kind"] == "q_learning"
    assert found["network"]["form"] == "pair"
