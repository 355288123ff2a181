import dataclasses
import json
import math
import pathlib

import pytest

from azjax import games
from azjax.networks import NetworkConfig
from azjax.search import SearchConfig
from azjax.training import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    preset,
)
from azjax.training.targets import horizon

WRONG = [
    (SelfPlayConfig, {"games": 0}, "self_play.games must be >= 1: 0"),
    (SelfPlayConfig, {"moves_per_chunk": 1}, "self_play.moves_per_chunk must be >= 2"),
    (SelfPlayConfig, {"simulations": ()}, "self_play.simulations must be one or more"),
    (SelfPlayConfig, {"simulations": (4, 0)}, "numbers >= 1 and <= 10000000: (4, 0)"),
    (
        SelfPlayConfig,
        {"empty_openings": 1.5},
        "self_play.empty_openings must be between 0 and 1: 1.5",
    ),
    (
        SelfPlayConfig,
        {"short_openings": math.nan},
        "self_play.short_openings must be between 0 and 1: nan",
    ),
    (
        SelfPlayConfig,
        {"empty_openings": 0.6, "short_openings": 0.6},
        "self_play.empty_openings + self_play.short_openings must be <= 1: 0.6 + 0.6",
    ),
    (SelfPlayConfig, {"short_opening_moves": -1}, "short_opening_moves must be >= 0"),
    (SelfPlayConfig, {"long_opening_moves": -1}, "long_opening_moves must be >= 0"),
    (SelfPlayConfig, {"sampled_moves": -1}, "self_play.sampled_moves must be >= 0: -1"),
    (
        SelfPlayConfig,
        {"full_searches": 0.0},
        "self_play.full_searches must be more than 0 and at most 1: 0.0",
    ),
    (SelfPlayConfig, {"full_searches": 1.1}, "more than 0 and at most 1: 1.1"),
    (SelfPlayConfig, {"full_searches": math.nan}, "self_play.full_searches must be"),
    (SelfPlayConfig, {"cheap_simulations": 0}, "cheap_simulations must be >= 1: 0"),
    (ReplayConfig, {"capacity": 0}, "replay.capacity must be >= 1: 0"),
    (ReplayConfig, {"window": 0.0}, "replay.window must be more than 0 and at most 1"),
    (ReplayConfig, {"window": 1.1}, "replay.window must be more than 0 and at most 1"),
    (ReplayConfig, {"min_window": 0}, "replay.min_window must be >= 1: 0"),
    (
        ReplayConfig,
        {"policy_entries": 0},
        "replay.policy_entries must be >= 1: 0",
    ),
    (ReplayConfig, {"min_positions": -1}, "replay.min_positions must be >= 0: -1"),
    (LearnerConfig, {"batch_size": 0}, "learner.batch_size must be >= 1: 0"),
    (LearnerConfig, {"uses": 0.0}, "learner.uses must be > 0 and finite: 0.0"),
    (LearnerConfig, {"uses": math.inf}, "learner.uses must be > 0 and finite: inf"),
    (LearnerConfig, {"learning_rate": -1.0}, "learner.learning_rate must be > 0"),
    (LearnerConfig, {"learning_rate": math.nan}, "learner.learning_rate must be > 0"),
    (LearnerConfig, {"warm_up": 2.0}, "learner.warm_up must be between 0 and 1: 2.0"),
    (LearnerConfig, {"final_rate": -0.1}, "learner.final_rate must be between 0 and 1"),
    (LearnerConfig, {"weight_decay": -1.0}, "learner.weight_decay must be >= 0: -1.0"),
    (LearnerConfig, {"max_gradient_norm": 0.0}, "max_gradient_norm must be > 0"),
    (
        LearnerConfig,
        {"averaging": 1.0},
        "learner.averaging must be at least 0 and below 1: 1.0",
    ),
    (LearnerConfig, {"value_weight": -1.0}, "learner.value_weight must be >= 0: -1.0"),
    (LearnerConfig, {"trace": 1.01}, "learner.trace must be between 0 and 1: 1.01"),
    (EvaluationConfig, {"times": 0}, "evaluation.times must be >= 1: 0"),
    (EvaluationConfig, {"positions": 0}, "evaluation.positions must be >= 1: 0"),
    (EvaluationConfig, {"simulations": 0}, "evaluation.simulations must be >= 1: 0"),
    (EvaluationConfig, {"games": 0}, "evaluation.games must be >= 2: 0"),
    (EvaluationConfig, {"games": 3}, "evaluation.games must be even: 3"),
    (
        EvaluationConfig,
        {"opponents": ("random", "random")},
        "evaluation.opponents has 'random' twice",
    ),
    (
        CheckpointConfig,
        {"every_minutes": -1.0},
        "checkpoint.every_minutes must be >= 0",
    ),
    (CheckpointConfig, {"keep": 0}, "checkpoint.keep must be >= 1: 0"),
    (TrainConfig, {}, "exactly one of minutes and iterations must be given"),
    (
        TrainConfig,
        {"minutes": 1.0, "iterations": 1},
        "minutes and iterations must be given: minutes=1.0, iterations=1",
    ),
    (TrainConfig, {"minutes": 0.0}, "minutes must be > 0 and finite: 0.0"),
    (TrainConfig, {"minutes": math.nan}, "minutes must be > 0 and finite: nan"),
    (TrainConfig, {"iterations": 0}, "iterations must be >= 1: 0"),
    (
        TrainConfig,
        {"iterations": 1, "seed": -1},
        "seed must be from 0 to 2**32 - 1: -1",
    ),
    (TrainConfig, {"iterations": 1, "seed": 2**32}, "seed must be from 0 to 2**32 - 1"),
    (TrainConfig, {"iterations": 1, "game": "nim"}, "unknown game 'nim'; known games:"),
    (
        TrainConfig,
        {
            "iterations": 1,
            "self_play": SelfPlayConfig(games=8, moves_per_chunk=4),
            "replay": ReplayConfig(capacity=287, min_window=280, min_positions=0),
        },
        "replay.capacity must be >= 288: 287; for a position can be drawn only once "
        "its game has ended or 31 moves have followed (learner.trace 0.8)",
    ),
    (
        TrainConfig,
        {
            "iterations": 1,
            "self_play": SelfPlayConfig(games=8, moves_per_chunk=4),
            "replay": ReplayConfig(min_window=279, min_positions=0),
        },
        "replay.min_window must be >= 280: 279",
    ),
    (
        TrainConfig,
        {
            "iterations": 1,
            "game": "chess",
            "self_play": SelfPlayConfig(games=4096),
            "learner": LearnerConfig(trace=1.0),
            "replay": ReplayConfig(capacity=2**21, min_window=2**19),
        },
        "replay.capacity must be >= 2228224: 2097152, and replay.min_window must be >= "
        "2228224: 524288; for a position can be drawn only once its game has ended or "
        "512 moves have followed (learner.trace 1.0)",
    ),
    (
        TrainConfig,
        {"iterations": 1, "replay": ReplayConfig(min_positions=65_537)},
        "replay.min_window must be >= 73728: 65536; for a position can be drawn only "
        "once updates have begun (replay.min_positions 65537)",
    ),
]


@pytest.mark.parametrize(("kind", "values", "message"), WRONG)
def test_a_wrong_value_is_refused_with_what_is_allowed(kind, values, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        kind(**values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_limit_can_be_reached():
    SelfPlayConfig(
        games=1, moves_per_chunk=2, simulations=(1,), empty_openings=0, short_openings=1
    )
    ReplayConfig(capacity=1, window=1, min_window=1, min_positions=0, policy_entries=1)
    LearnerConfig(batch_size=1, warm_up=1, final_rate=1, averaging=0, trace=0)
    EvaluationConfig(times=1, positions=1, simulations=1, games=2)
    CheckpointConfig(every_minutes=0, keep=1)
    TrainConfig(minutes=0.1, seed=2**32 - 1)


@pytest.mark.parametrize("name", ["auto", "cpu", "accelerator"])
@pytest.mark.parametrize("game", ["connect_four", "tic_tac_toe"])
def test_a_preset_lasts_20_minutes_and_names_its_directory_after_the_game(name, game):
    config = preset(name, game)
    assert (config.minutes, config.iterations) == (20, None)
    assert config.directory.parts == ("runs", game)
    assert config.replay_chunks >= 2
    assert config.updates_per_iteration >= 1


@pytest.mark.parametrize("name", ["cpu", "accelerator"])
@pytest.mark.parametrize("game", [*games.available(), "go:size=19,max_moves=1444"])
def test_a_presets_window_holds_positions_of_every_game_until_they_are_eligible(
    name, game
):
    config = preset(name, game)
    moves = horizon(config.learner.trace, games.make(game).max_moves)
    window = config.window_moves(1)
    assert window >= config.self_play.moves_per_chunk + moves
    assert window <= config.replay_chunks * config.self_play.moves_per_chunk
    # The window of the first update holds all positions before it.
    assert window * config.self_play.games >= config.replay.min_positions


def test_a_long_run_on_a_small_board_has_chunks_of_full_size():
    config = preset("cpu", "connect_four", minutes=20.0)
    assert config.self_play == SelfPlayConfig()
    assert config.replay == ReplayConfig()
    assert config.evaluation == EvaluationConfig()


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        (("cpu", "connect_four", 2.0), ("cpu", "connect_four", 20.0)),
        (("cpu", "othello", 20.0), ("cpu", "connect_four", 20.0)),
        (("cpu", "othello", 2.0), ("cpu", "othello", 5.0)),
        (("cpu", "go:size=19", 20.0), ("cpu", "go", 20.0)),
        (("accelerator", "go", 1.0), ("accelerator", "go", 20.0)),
    ],
)
def test_a_shorter_run_or_a_larger_board_has_smaller_chunks(shorter, longer):
    small, large = (
        preset(name, game, minutes=minutes) for name, game, minutes in (shorter, longer)
    )
    assert small.chunk_positions < large.chunk_positions
    begin = [c.replay.min_positions / c.chunk_positions for c in (small, large)]
    assert begin[0] == begin[1]
    assert small.updates_per_iteration < large.updates_per_iteration


def test_a_run_measured_in_iterations_has_chunks_of_full_size():
    config = preset("cpu", "othello", iterations=3)
    assert config.self_play == SelfPlayConfig()


def test_chunks_that_are_given_stay_as_they_are():
    self_play = SelfPlayConfig(games=7, moves_per_chunk=3)
    config = preset("cpu", "othello", minutes=1.0, self_play=self_play)
    assert config.self_play == self_play


@pytest.mark.parametrize("minutes", [0.0, -1.0, math.inf, math.nan])
def test_a_length_that_is_none_is_refused(minutes):
    with pytest.raises(ValueError, match="minutes must be > 0 and finite"):
        preset("cpu", "othello", minutes=minutes)


def test_a_presets_fields_can_be_changed():
    config = preset(
        "accelerator", iterations=3, seed=7, learner=LearnerConfig(batch_size=5)
    )
    assert (config.minutes, config.iterations, config.seed) == (None, 3, 7)
    assert config.learner.batch_size == 5
    assert config.network.trunk == "conv"


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="presets are auto, cpu and accelerator"):
        preset("tpu")  # pyright: ignore[reportArgumentType]


def test_the_configuration_survives_json():
    config = preset("accelerator", "tic_tac_toe", iterations=2, run_dir="somewhere")
    values = json.loads(json.dumps(config.to_json()))
    parts = {
        "network": NetworkConfig,
        "search": SearchConfig,
        "self_play": SelfPlayConfig,
        "replay": ReplayConfig,
        "learner": LearnerConfig,
        "evaluation": EvaluationConfig,
        "checkpoint": CheckpointConfig,
    }
    values["self_play"]["simulations"] = tuple(values["self_play"]["simulations"])
    values["evaluation"]["opponents"] = tuple(values["evaluation"]["opponents"])
    values |= {name: kind(**values[name]) for name, kind in parts.items()}
    assert TrainConfig(**values) == config


def test_derived_numbers_follow_from_the_settings():
    config = dataclasses.replace(
        preset("cpu", iterations=1),
        self_play=SelfPlayConfig(games=8, moves_per_chunk=4),
        replay=ReplayConfig(capacity=300, min_positions=0),
        learner=LearnerConfig(batch_size=16, uses=3.0),
    )
    assert config.chunk_positions == 32
    assert config.replay_chunks == 9
    assert config.updates_per_iteration == 6


@pytest.mark.parametrize(
    ("share", "games", "full"),
    [(1.0, 8, 8), (0.25, 8, 2), (0.3, 8, 2), (0.001, 8, 1), (0.5, 1, 1)],
)
def test_some_games_are_searched_in_full_at_every_move(share, games, full):
    config = SelfPlayConfig(games=games, full_searches=share)
    assert config.full_games == full


@pytest.mark.parametrize("game", ["hex:3", "hex:size=3", "hex:3,swap=false"])
def test_a_run_has_one_directory_however_its_game_is_spelt(game):
    config = TrainConfig(game=game, iterations=1)
    assert config.game == "hex:3"
    assert config.directory == pathlib.Path("runs/hex_3")
