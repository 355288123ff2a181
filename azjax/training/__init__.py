"""AlphaZero by self-play: `train` and its parts.

Shapes: `L` lanes; `B` game slots, each of which holds one game after the other; `T`
    moves of a chunk of self-play; `R` rows of the replay; `N` positions of a batch; `A`
    actions; `K` stored entries of a policy; `H, W, C` height, width and planes of an
    observation. In `azjax.search`, `N` is the number of nodes of a tree.

JAX terms: a pytree is a nested structure of arrays, its leaves. A jitted function is
compiled at its first call, and again for other shapes. `vmap` turns a function of one
position into a function of a batch; `lax.scan` is a compiled loop that stacks its
outputs. A donated argument must not be used again: its memory is reused for the result.
A random key that a function consumes must not be used again either: `jax.random.split`
makes several keys from one, `fold_in` makes a key from a key and a number.
"""

from azjax.training.alphazero import (
    Algorithm,
    TrainState,
    make_algorithm,
    train_iteration,
)
from azjax.training.config import (
    CheckpointConfig,
    DataConfig,
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    ReportConfig,
    SelfPlayConfig,
    TrainConfig,
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
    Eligibility,
    Index,
    Replay,
    Sample,
    Sampler,
    Targets,
    empty_replay,
    insert,
    locate,
    make_batch,
    make_index,
    uniform_sampler,
)
from azjax.training.run.open_run import Run
from azjax.training.run.saved_config import load_config, repeated_config
from azjax.training.self_play import Games, Trajectory, make_self_play, start_games
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
    "DataConfig",
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
    "ReportConfig",
    "Run",
    "Sample",
    "Sampler",
    "SelfPlayConfig",
    "Targets",
    "TrainConfig",
    "TrainState",
    "Trajectory",
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
