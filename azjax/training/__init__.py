"""Learning by self-play: `train`, and the parts that it is made of."""

from azjax.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
)
from azjax.training.host_loop import Run
from azjax.training.iteration import (
    Algorithm,
    TrainState,
    make_algorithm,
    train_iteration,
)
from azjax.training.learner import (
    HeadLoss,
    LearnerState,
    Loss,
    head_losses,
    init_learner,
    make_loss,
    make_optimizer,
    make_update,
)
from azjax.training.loop import train
from azjax.training.presets import fitted_to_length, preset
from azjax.training.replay import (
    Batch,
    Draw,
    Eligibility,
    Index,
    Replay,
    Targets,
    empty_replay,
    insert,
    locate,
    make_batch,
    make_index,
)
from azjax.training.sampling import Sampler, uniform_sampler
from azjax.training.saved_config import load_config, repeated_config
from azjax.training.self_play import Chunk, Games, make_self_play, start_games
from azjax.training.targets import (
    ValueTarget,
    lambda_returns,
    lambda_target,
    one_hot_result,
    soft_result,
)

__all__ = [
    "Algorithm",
    "Batch",
    "CheckpointConfig",
    "Chunk",
    "Draw",
    "Eligibility",
    "EvaluationConfig",
    "Games",
    "HeadLoss",
    "Index",
    "LearnerConfig",
    "LearnerState",
    "Loss",
    "Replay",
    "ReplayConfig",
    "Run",
    "Sampler",
    "SelfPlayConfig",
    "Targets",
    "TrainConfig",
    "TrainState",
    "ValueTarget",
    "empty_replay",
    "fitted_to_length",
    "head_losses",
    "init_learner",
    "insert",
    "lambda_returns",
    "lambda_target",
    "load_config",
    "locate",
    "make_algorithm",
    "make_batch",
    "make_index",
    "make_loss",
    "make_optimizer",
    "make_self_play",
    "make_update",
    "one_hot_result",
    "preset",
    "repeated_config",
    "soft_result",
    "start_games",
    "train",
    "train_iteration",
    "uniform_sampler",
]
