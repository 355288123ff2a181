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
`jax.tree.map` applies a function to each leaf. The function of a `lax.scan` maps a
carry and an item to the next carry and an output. `jax.value_and_grad` makes from a
function another one that returns its result and the gradient by its first argument. A
jitted call returns before the device has computed; reading its result waits.

Example:
    An iteration of AlphaZero without `train`. Self-play makes nine moves in each of
    four slots:

    >>> import dataclasses
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from azjax import games, networks, search, training
    >>> game = games.make("tic_tac_toe")
    >>> network, variables = networks.init_network(
    ...     jax.random.key(0),
    ...     game.observation_shape,
    ...     game.num_actions,
    ...     networks.NetworkConfig(),
    ... )
    >>> config = training.SelfPlayConfig(
    ...     num_games=4, moves_per_chunk=9, num_simulations=(4,)
    ... )
    >>> play = training.make_self_play(game, network, search.GumbelConfig(), config)
    >>> slots = training.start_games(game, 4, jax.random.key(1))
    >>> slots, trajectory, metrics, _ = play(variables, 4, slots, jax.random.key(2))
    >>> trajectory.action.shape
    (9, 4)

    The replay stores them. Positions of finished games can be sampled, and no game of
    tic-tac-toe has more than nine moves:

    >>> replay = training.empty_replay(
    ...     game, num_chunks=2, moves_per_chunk=9, num_games=4, policy_entries=9
    ... )
    >>> replay = training.insert(replay, trajectory, 0)
    >>> value_target = training.lambda_target(0.8, game.max_moves)
    >>> replay, index, _ = training.make_index(
    ...     replay, num_moves=9, window=18, value_target=value_target
    ... )
    >>> bool(index.size >= 4)
    True
    >>> sampler = training.uniform_sampler()
    >>> sample = sampler.choose((), index, jax.random.key(3), 16)
    >>> batch = training.make_batch(game, replay, index, sample)

    An update of the network with a batch of 16 positions:

    >>> optimizer = training.make_optimizer(training.LearnerConfig())
    >>> learner = training.init_learner(variables, optimizer)
    >>> update = training.make_update(
    ...     network, optimizer, training.head_losses, ema_decay=0.998
    ... )
    >>> learner, losses, sample_loss = update(learner, batch, 0.0)
    >>> sorted(losses), sample_loss.shape
    (['gradient_norm', 'policy_loss', 'value_loss', 'weight_norm'], (16,))
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
