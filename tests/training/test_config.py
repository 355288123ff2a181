import dataclasses
import math
import pathlib

import pytest

from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    preset,
)

WRONG = [
    (SelfPlayConfig, {"num_games": 0}, "self_play.num_games must be an int >= 1: 0"),
    (SelfPlayConfig, {"moves_per_chunk": 1}, "moves_per_chunk must be an int >= 2"),
    (
        SelfPlayConfig,
        {"num_simulations": ()},
        "self_play.num_simulations must be one or more",
    ),
    (
        SelfPlayConfig,
        {"num_simulations": (4, 0)},
        "num_simulations must be an int from 1 to 10000000: 0",
    ),
    (
        SelfPlayConfig,
        {"initial_position_fraction": 1.5},
        "self_play.initial_position_fraction must be a number from 0 to 1: 1.5",
    ),
    (
        SelfPlayConfig,
        {"short_opening_fraction": math.nan},
        "self_play.short_opening_fraction must be a number from 0 to 1: nan",
    ),
    (
        SelfPlayConfig,
        {"initial_position_fraction": 0.6, "short_opening_fraction": 0.6},
        "self_play.initial_position_fraction + self_play.short_opening_fraction "
        "must be <= 1: 0.6 + 0.6",
    ),
    (
        SelfPlayConfig,
        {"short_opening_moves": -1},
        "short_opening_moves must be an int >= 0",
    ),
    (
        SelfPlayConfig,
        {"long_opening_moves": -1},
        "long_opening_moves must be an int >= 0",
    ),
    (
        SelfPlayConfig,
        {"temperature_moves": -1},
        "self_play.temperature_moves must be an int >= 0: -1",
    ),
    (
        SelfPlayConfig,
        {"full_search_fraction": 0.0},
        "self_play.full_search_fraction must be a number > 0 and <= 1: 0.0",
    ),
    (SelfPlayConfig, {"full_search_fraction": 1.1}, "a number > 0 and <= 1: 1.1"),
    (
        SelfPlayConfig,
        {"full_search_fraction": math.nan},
        "self_play.full_search_fraction must be",
    ),
    (
        SelfPlayConfig,
        {"fast_simulations": 0},
        "fast_simulations must be an int >= 1: 0",
    ),
    (ReplayConfig, {"capacity": 0}, "replay.capacity must be an int >= 1: 0"),
    (ReplayConfig, {"window": 0.0}, "replay.window must be a number > 0 and <= 1"),
    (ReplayConfig, {"window": 1.1}, "replay.window must be a number > 0 and <= 1"),
    (ReplayConfig, {"min_window": 0}, "replay.min_window must be an int >= 1: 0"),
    (
        ReplayConfig,
        {"policy_entries": 0},
        "replay.policy_entries must be an int >= 1: 0",
    ),
    (ReplayConfig, {"min_positions": -1}, "min_positions must be an int >= 0: -1"),
    (LearnerConfig, {"batch_size": 0}, "learner.batch_size must be an int >= 1: 0"),
    (
        LearnerConfig,
        {"replay_ratio": 0.0},
        "learner.replay_ratio must be a finite number > 0: 0.0",
    ),
    (
        LearnerConfig,
        {"replay_ratio": math.inf},
        "learner.replay_ratio must be a finite number > 0: inf",
    ),
    (
        LearnerConfig,
        {"learning_rate": -1.0},
        "learning_rate must be a finite number > 0",
    ),
    (
        LearnerConfig,
        {"learning_rate": math.nan},
        "learning_rate must be a finite number > 0",
    ),
    (
        LearnerConfig,
        {"warmup_fraction": 2.0},
        "learner.warmup_fraction must be a number from 0 to 1: 2.0",
    ),
    (
        LearnerConfig,
        {"final_lr_fraction": -0.1},
        "learner.final_lr_fraction must be a number from 0 to 1",
    ),
    (
        LearnerConfig,
        {"weight_decay": -1.0},
        "weight_decay must be a finite number >= 0: -1.0",
    ),
    (
        LearnerConfig,
        {"max_gradient_norm": 0.0},
        "max_gradient_norm must be a finite number > 0",
    ),
    (
        LearnerConfig,
        {"ema_decay": 1.0},
        "learner.ema_decay must be a number >= 0 and < 1: 1.0",
    ),
    (
        LearnerConfig,
        {"value_weight": -1.0},
        "value_weight must be a finite number >= 0: -1.0",
    ),
    (
        LearnerConfig,
        {"td_lambda": 1.01},
        "learner.td_lambda must be a number from 0 to 1: 1.01",
    ),
    (
        EvaluationConfig,
        {"num_evaluations": 0},
        "evaluation.num_evaluations must be an int >= 1: 0",
    ),
    (
        EvaluationConfig,
        {"num_positions": 0},
        "evaluation.num_positions must be an int >= 1: 0",
    ),
    (
        EvaluationConfig,
        {"num_simulations": 0},
        "evaluation.num_simulations must be an int from 1 to 10000000: 0",
    ),
    (EvaluationConfig, {"num_games": 0}, "evaluation.num_games must be an int >= 2: 0"),
    (EvaluationConfig, {"num_games": 3}, "evaluation.num_games must be even: 3"),
    (
        EvaluationConfig,
        {"opponents": ("random", "random")},
        "evaluation.opponents has 'random' twice",
    ),
    (
        CheckpointConfig,
        {"every_minutes": -1.0},
        "checkpoint.every_minutes must be a finite number >= 0",
    ),
    (CheckpointConfig, {"keep": 0}, "checkpoint.keep must be an int >= 1: 0"),
    (TrainConfig, {}, "exactly one of minutes and iterations must be given"),
    (
        TrainConfig,
        {"minutes": 1.0, "iterations": 1},
        "minutes and iterations must be given: minutes=1.0, iterations=1",
    ),
    (TrainConfig, {"iterations": 2.5}, "iterations must be an int from 1"),
    (TrainConfig, {"iterations": True}, "iterations must be an int from 1"),
    (TrainConfig, {"iterations": 10**20}, "iterations must be an int from 1"),
    (
        TrainConfig,
        {"minutes": "5"},
        "minutes must be a number > 0 and <= 1000000000: '5'",
    ),
    (
        TrainConfig,
        {"minutes": 0.0},
        "minutes must be a number > 0 and <= 1000000000: 0.0",
    ),
    (
        TrainConfig,
        {"minutes": math.nan},
        "minutes must be a number > 0 and <= 1000000000: nan",
    ),
    (
        TrainConfig,
        {"iterations": 0},
        "iterations must be an int from 1 to 1000000000: 0",
    ),
    (
        TrainConfig,
        {"iterations": 1, "seed": -1},
        "seed must be an int from 0 to 2**32 - 1: -1",
    ),
    (
        TrainConfig,
        {"iterations": 1, "seed": 2**32},
        "seed must be an int from 0 to 2**32 - 1",
    ),
    (TrainConfig, {"iterations": 1, "game": "nim"}, "unknown game 'nim'; known games:"),
    (
        TrainConfig,
        {
            "iterations": 1,
            "self_play": SelfPlayConfig(num_games=8, moves_per_chunk=4),
            "replay": ReplayConfig(capacity=287, min_window=280, min_positions=0),
        },
        "replay.capacity must be >= 288: 287; a position can be sampled only once "
        "its game has ended or 31 moves have followed (learner.td_lambda 0.8)",
    ),
    (
        TrainConfig,
        {
            "iterations": 1,
            "self_play": SelfPlayConfig(num_games=8, moves_per_chunk=4),
            "replay": ReplayConfig(capacity=2**34),
        },
        "replay.capacity must be an int from 1 to 17179869183: 17179869184",
    ),
    (
        TrainConfig,
        {
            "iterations": 1,
            "self_play": SelfPlayConfig(num_games=8, moves_per_chunk=4),
            "replay": ReplayConfig(min_window=279, min_positions=0),
        },
        "replay.min_window must be >= 280: 279",
    ),
    (
        TrainConfig,
        {
            "iterations": 1,
            "game": "chess",
            "self_play": SelfPlayConfig(num_games=4096),
            "learner": LearnerConfig(td_lambda=1.0),
            "replay": ReplayConfig(capacity=2**21, min_window=2**19),
        },
        "replay.capacity must be >= 2228224: 2097152, and replay.min_window must be >= "
        "2228224: 524288; a position can be sampled only once its game has ended or "
        "512 moves have followed (learner.td_lambda 1.0)",
    ),
    (
        TrainConfig,
        {"iterations": 1, "replay": ReplayConfig(min_positions=65_537)},
        "replay.min_window must be >= 73728: 65536; a position can be sampled only "
        "once updates have begun (replay.min_positions 65537)",
    ),
]


@pytest.mark.parametrize(("kind", "values", "message"), WRONG)
def test_the_error_of_an_invalid_value_names_the_allowed_ones(kind, values, message):
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
