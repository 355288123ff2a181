"""Preset configurations for a machine, a game and a length."""

import dataclasses
import math
from typing import Any, Literal

import jax

from azjax import games
from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.training.config import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
)

PresetName = Literal["auto", "cpu", "accelerator"]

# Chunks are halved for shorter runs and for boards of more than `_FULL_CELLS` cells, at
# most `_MOST_HALVINGS` times, down to `_FEWEST_MOVES` moves.
_FULL_CELLS = 42
_MOST_HALVINGS = 5
_FEWEST_MOVES = 8
_FEWEST_EVALUATIONS = 4
_DEFAULT_MINUTES = 20.0
# Lambda of games of at most `_SHORT_GAME` moves, and of the longest games.
_LEAST_LAMBDA, _SHORT_GAME, _MOST_LAMBDA = 0.8, 42, 0.95


def preset(name: PresetName, game: str = "connect_four", **changes: Any) -> TrainConfig:
    """Returns settings for a machine, a game and a length.

    Short runs and large boards get smaller chunks of self-play, so that a run still has
    many iterations; short runs get fewer evaluations. In longer games the value targets
    look further ahead (`learner.td_lambda`).

    Args:
        name: `cpu`, `accelerator`, or `auto` for the backend that JAX finds.
        game: game spec, as `azjax.games.make` takes it.
        **changes: other fields of `TrainConfig`; without `minutes` or `iterations` the
            run takes 20 minutes.

    Raises:
        ValueError: the preset or the game is unknown, or a value is not allowed.

    Example:
        >>> config = training.preset("cpu", "connect_four", minutes=20)
        >>> config.self_play.moves_per_chunk, config.evaluation.num_evaluations
        (32, 20)
        >>> config = training.preset("cpu", "connect_four", minutes=5)
        >>> config.self_play.moves_per_chunk, config.evaluation.num_evaluations
        (8, 5)
    """
    if name not in ("auto", "cpu", "accelerator"):
        raise ValueError(
            f"unknown preset {name!r}; presets are auto, cpu and accelerator"
        )
    if changes.get("minutes") is None and changes.get("iterations") is None:
        changes["minutes"] = _DEFAULT_MINUTES
    is_cpu = name == "cpu" or (name == "auto" and jax.default_backend() == "cpu")
    made = games.make(game)
    # Value targets look ahead over about the same part of each game, in games longer
    # than Connect Four.
    td_lambda = round(_LEAST_LAMBDA ** (_SHORT_GAME / made.max_moves), 3)
    td_lambda = min(max(td_lambda, _LEAST_LAMBDA), _MOST_LAMBDA)
    if is_cpu:
        defaults: dict[str, Any] = {
            "network": NetworkConfig(line_length=made.line_length),
            "learner": LearnerConfig(td_lambda=td_lambda),
        }
    else:
        defaults = {
            "network": NetworkConfig(
                trunk=ConvTrunkConfig(num_blocks=6, channels=128, global_pooling=True),
                dtype="bfloat16",
            ),
            "self_play": SelfPlayConfig(
                num_games=4096, num_simulations=(16, 32, 32, 32, 64, 64, 64, 64)
            ),
            "replay": ReplayConfig(
                capacity=2**21,
                # A longer horizon needs more moves of each game.
                min_window=2**19 if td_lambda == _LEAST_LAMBDA else 2**20,
                min_positions=2**17,
            ),
            "learner": LearnerConfig(batch_size=4096, td_lambda=td_lambda),
            "evaluation": EvaluationConfig(num_positions=3000, num_games=512),
        }
    config = TrainConfig(game=game, **defaults | changes)
    fitted = fitted_to_length(config, full_minutes=20.0 if is_cpu else 5.0)
    return dataclasses.replace(fitted, **changes)


def fitted_to_length(config: TrainConfig, *, full_minutes: float) -> TrainConfig:
    """Returns the settings fitted to the run's length and board: smaller chunks of
    self-play for a short run or a large board, and fewer evaluations for a short run.

    Args:
        config: settings with chunks for a run of `full_minutes` or longer on a small
            board.
        full_minutes: see above.

    Example:
        >>> config = training.TrainConfig(game="connect_four", minutes=5)
        >>> config = training.fitted_to_length(config, full_minutes=20)
        >>> config.self_play.num_games, config.self_play.moves_per_chunk
        (256, 8)
    """
    if config.minutes is None:
        return config
    fraction = max(config.minutes / full_minutes, 1e-9)
    height, width, _ = games.make(config.game).observation_shape
    halvings = math.ceil(math.log2(max(1.0, height * width / _FULL_CELLS / fraction)))
    halvings = min(halvings, _MOST_HALVINGS)
    self_play, replay, evaluation = config.self_play, config.replay, config.evaluation
    evaluations = min(
        evaluation.num_evaluations, round(evaluation.num_evaluations * fraction)
    )
    moves = max(_FEWEST_MOVES, self_play.moves_per_chunk >> halvings)
    num_games = self_play.num_games * self_play.moves_per_chunk // moves >> halvings
    num_games = max(1, num_games // config.num_lanes) * config.num_lanes
    return dataclasses.replace(
        config,
        self_play=dataclasses.replace(
            self_play, num_games=num_games, moves_per_chunk=moves
        ),
        replay=dataclasses.replace(
            replay, min_positions=replay.min_positions >> halvings
        ),
        evaluation=dataclasses.replace(
            evaluation, num_evaluations=max(_FEWEST_EVALUATIONS, evaluations)
        ),
    )
