import math

import numpy as np
import pytest

from azjax import games
from azjax.networks import ConvTrunkConfig
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    preset,
)
from azjax.training.targets import horizon


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
@pytest.mark.parametrize("minutes", [0.5, 20.0])
def test_a_presets_window_keeps_positions_of_every_game_until_they_are_eligible(
    name, game, minutes
):
    config = preset(name, game, minutes=minutes)
    moves = horizon(config.learner.td_lambda, games.make(game).max_moves)
    window = config.window_moves(1)
    assert window >= config.self_play.moves_per_chunk + moves
    assert window <= config.replay_chunks * config.self_play.moves_per_chunk
    # The window at the first update contains all positions so far.
    assert window * config.self_play.num_games >= config.replay.min_positions


@pytest.mark.parametrize(
    ("game", "length"), [("connect_four", 4), ("gomoku:9,9,5", 5), ("othello", 0)]
)
def test_a_network_on_a_cpu_gets_the_lines_of_the_game(game, length):
    assert preset("cpu", game).network.line_length == length
    assert preset("accelerator", game).network.line_length == 0


@pytest.mark.parametrize("name", ["cpu", "accelerator"])
def test_value_targets_look_further_ahead_in_longer_games(name):
    found = [
        preset(name, game).learner.td_lambda
        for game in ("tic_tac_toe", "connect_four", "othello", "go", "chess")
    ]
    assert found == [0.8, 0.8, 0.924, 0.944, 0.95]
    # A quarter of the longest game ahead, results have about the same weight.
    weights = [
        value ** (games.make(game).max_moves / 4)
        for game, value in zip(
            ("connect_four", "othello", "go"), found[1:4], strict=True
        )
    ]
    np.testing.assert_allclose(weights, weights[0], rtol=0.02)


def test_a_long_run_or_one_of_iterations_has_full_chunks_and_given_ones_are_kept():
    config = preset("cpu", "connect_four", minutes=20.0)
    assert config.self_play == SelfPlayConfig()
    assert config.replay == ReplayConfig()
    assert config.evaluation == EvaluationConfig()
    assert preset("cpu", "othello", iterations=3).self_play == SelfPlayConfig()
    self_play = SelfPlayConfig(num_games=56, moves_per_chunk=3)
    config = preset("cpu", "othello", minutes=1.0, self_play=self_play)
    assert config.self_play == self_play


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        (("cpu", "connect_four", 2.0), ("cpu", "connect_four", 20.0)),
        (("cpu", "connect_four", 5e-324), ("cpu", "connect_four", 20.0)),
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


@pytest.mark.parametrize("minutes", [0.0, -1.0, math.inf, math.nan])
def test_invalid_lengths_raise(minutes):
    with pytest.raises(ValueError, match="minutes must be a number > 0 and <="):
        preset("cpu", "othello", minutes=minutes)


def test_a_presets_fields_can_be_changed():
    config = preset(
        "accelerator", iterations=3, seed=7, learner=LearnerConfig(batch_size=16)
    )
    assert (config.minutes, config.iterations, config.seed) == (None, 3, 7)
    assert config.learner.batch_size == 16
    assert isinstance(config.network.trunk, ConvTrunkConfig)


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="presets are auto, cpu and accelerator"):
        preset("tpu")  # pyright: ignore[reportArgumentType]
