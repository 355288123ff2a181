"""Learning by self-play."""

from azjax.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    preset,
)
from azjax.training.loop import Run, train

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
