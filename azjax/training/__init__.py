"""Learning by self-play."""

from azjax.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
)
from azjax.training.loop import Run, train
from azjax.training.presets import preset

__all__ = [
    "CheckpointConfig",
    "EvaluationConfig",
    "LearnerConfig",
    "ReplayConfig",
    "Run",
    "SelfPlayConfig",
    "TrainConfig",
    "preset",
    "train",
]
