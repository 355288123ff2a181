"""Training configurations that suit a machine, a game and a length."""

import dataclasses
import math
from typing import Any, Literal

import jax

from azjax import games
from azjax.networks import NetworkConfig
from azjax.training.config import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
)

PresetName = Literal["auto", "cpu", "accelerator"]

# In a run of so many minutes, on a board of so many cells, the chunks of a preset have
# their full size. In shorter runs and on larger boards they are halved so many times at
# most, and so many moves are left in each.
_FULL_MINUTES = {"cpu": 20.0, "accelerator": 5.0}
_FULL_CELLS = 42
_MOST_HALVINGS = 5
_FEWEST_MOVES = 8
_FEWEST_EVALUATIONS = 4


def preset(name: PresetName, game: str = "connect_four", **changes: Any) -> TrainConfig:
    """Returns the settings that suit a machine, a game and a length.

    The chunks of self-play are smaller in a short run and on a large board, so that it
    has many iterations all the same, and there are fewer evaluations in a short run.

    Args:
        name: `cpu`, `accelerator`, or `auto` for what JAX finds here.
        game: what `azjax.games.make` takes.
        **changes: fields of `TrainConfig` that differ; the run lasts 20 minutes unless
            `minutes` or `iterations` says otherwise.

    Raises:
        ValueError: the preset or the game is unknown, or a value is not allowed.
    """
    if name not in ("auto", "cpu", "accelerator"):
        raise ValueError(
            f"unknown preset {name!r}; presets are auto, cpu and accelerator"
        )
    if changes.get("minutes") is None and changes.get("iterations") is None:
        changes["minutes"] = 20.0
    if name == "auto":
        name = "cpu" if jax.default_backend() == "cpu" else "accelerator"
    if name == "cpu":
        parts = {
            "self_play": SelfPlayConfig(),
            "replay": ReplayConfig(),
            "evaluation": EvaluationConfig(),
        }
        parts |= _for_length(name, game, changes.get("minutes"), parts)
        return TrainConfig(game=game, **parts | changes)
    accelerator: dict[str, Any] = {
        "network": NetworkConfig(
            trunk="conv",
            num_blocks=6,
            channels=128,
            global_pooling=True,
            dtype="bfloat16",
        ),
        "self_play": SelfPlayConfig(
            num_games=4096, num_simulations=(16, 32, 32, 32, 64, 64, 64, 64)
        ),
        "replay": ReplayConfig(capacity=2**21, min_window=2**19, min_positions=2**17),
        "learner": LearnerConfig(batch_size=4096),
        "evaluation": EvaluationConfig(num_positions=3000, num_games=512),
    }
    accelerator |= _for_length(name, game, changes.get("minutes"), accelerator)
    return TrainConfig(game=game, **accelerator | changes)


def _for_length(
    name: str, game: str, minutes: float | None, parts: dict[str, Any]
) -> dict[str, Any]:
    """Returns the parts of a preset that are others in a run of so many minutes."""
    if minutes is None or not 0 < minutes < math.inf:
        return {}
    share = minutes / _FULL_MINUTES[name]
    height, width, _ = games.make(game).observation_shape
    halvings = math.ceil(math.log2(max(1.0, height * width / _FULL_CELLS / share)))
    halvings = min(halvings, _MOST_HALVINGS)
    self_play, evaluation = parts["self_play"], parts["evaluation"]
    evaluations = min(
        evaluation.num_evaluations, round(evaluation.num_evaluations * share)
    )
    moves = max(_FEWEST_MOVES, self_play.moves_per_chunk >> halvings)
    positions = self_play.num_games * self_play.moves_per_chunk >> halvings
    return {
        "self_play": dataclasses.replace(
            self_play, num_games=positions // moves, moves_per_chunk=moves
        ),
        "replay": dataclasses.replace(
            parts["replay"], min_positions=parts["replay"].min_positions >> halvings
        ),
        "evaluation": dataclasses.replace(
            evaluation, num_evaluations=max(_FEWEST_EVALUATIONS, evaluations)
        ),
    }
