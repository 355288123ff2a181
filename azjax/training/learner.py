"""The loss, one update, and the averaged weights."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax.games import Game
from azjax.networks import Network, Variables, predict_in_training, value_loss
from azjax.search import tree_bytes
from azjax.training.config import LearnerConfig
from azjax.training.replay import Batch, Index, Replay, empty_replay, sample


@struct.dataclass
class LearnerState:
    """What an update changes.

    variables: learnt.
    averaged: their running average, which plays and is evaluated.
    opt_state: the optimiser's.
    updates: `[]` int32; made so far.
    """

    variables: Variables
    averaged: Variables
    opt_state: optax.OptState
    updates: jax.Array


class LearnerMetrics(NamedTuple):
    """What an update saw, scalars.

    policy_loss: cross-entropy less the targets' own entropy (nats).
    value_loss: cross-entropy (nats).
    gradient_norm: before it is cut.
    """

    policy_loss: jax.Array
    value_loss: jax.Array
    gradient_norm: jax.Array


def learning_rate(config: LearnerConfig, progress: jax.Array | float) -> jax.Array:
    """Returns the learning rate at a share of the run: linear rise, then a cosine.

    Args:
        config: with the highest rate, the rise's share of the run, and the final rate.
        progress: the share of the run that is over, in [0, 1].
    """
    progress = jnp.clip(progress, 0.0, 1.0)
    rise = jnp.minimum(1.0, progress / config.warm_up) if config.warm_up else 1.0
    span = max(1.0 - config.warm_up, 1e-9)
    fall = jnp.clip((progress - config.warm_up) / span, 0.0, 1.0)
    cosine = 0.5 * (1 + jnp.cos(math.pi * fall))
    share = config.final_rate + (1 - config.final_rate) * cosine
    # The very first updates must not stand still.
    return config.learning_rate * jnp.maximum(rise, 0.01) * share


def make_optimizer(config: LearnerConfig) -> optax.GradientTransformationExtraArgs:
    """Returns AdamW whose learning rate follows the run's progress.

    Its `update` takes the extra argument `progress`, `[]` in [0, 1].
    """

    def scale_by_progress(updates, state, params=None, **extra_args):
        del params
        rate = learning_rate(config, extra_args["progress"])
        return jax.tree.map(lambda update: -rate * update, updates), state

    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm),
        optax.scale_by_adam(b2=0.99),
        optax.add_decayed_weights(config.weight_decay, mask=_kernels),
        optax.GradientTransformationExtraArgs(
            lambda params: optax.EmptyState(), scale_by_progress
        ),
    )


def init_learner(
    variables: Variables, optimizer: optax.GradientTransformation
) -> LearnerState:
    """Returns the state before the first update."""
    return LearnerState(
        variables=variables,
        averaged=jax.tree.map(jnp.copy, variables),
        opt_state=optimizer.init(variables.params),
        updates=jnp.int32(0),
    )


def make_update(
    game: Game,
    network: Network,
    optimizer: optax.GradientTransformation,
    config: LearnerConfig,
):
    """Returns a jitted `(learner, replay, index, rng_key, progress)` to `(learner,
    metrics)` that draws a batch and learns from it.

    The learner is donated, the key is consumed. Called from a Python loop: XLA's CPU
    backend computes a convolution's gradient far slower within `lax.scan`.
    """
    optimizer = optax.with_extra_args_support(optimizer)

    def update(
        learner: LearnerState,
        replay: Replay,
        index: Index,
        rng_key: jax.Array,
        progress: jax.Array,
    ) -> tuple[LearnerState, LearnerMetrics]:
        batch = sample(game, replay, index, rng_key, config.batch_size)
        (_, (metrics, batch_stats)), gradients = jax.value_and_grad(
            _loss, has_aux=True
        )(
            learner.variables.params,
            learner.variables.batch_stats,
            network,
            batch,
            config,
        )
        updates, opt_state = optimizer.update(
            gradients, learner.opt_state, learner.variables.params, progress=progress
        )
        params = optax.apply_updates(learner.variables.params, updates)
        variables = learner.variables._replace(params=params, batch_stats=batch_stats)
        count = learner.updates + 1
        decay = jnp.minimum(config.averaging, count / (count + 10.0))
        averaged = jax.tree.map(
            lambda average, new: (decay * average + (1 - decay) * new).astype(
                new.dtype
            ),
            learner.averaged,
            variables,
        )
        metrics = metrics._replace(gradient_norm=optax.tree.norm(gradients))
        return LearnerState(variables, averaged, opt_state, count), metrics

    return jax.jit(update, donate_argnums=0)


def update_bytes(
    game: Game, network: Network, variables: Variables, config: LearnerConfig
) -> int:
    """Returns about how many bytes an update takes beside what it is given: the batch,
    what is stored for the gradient, and the gradient; nothing of it is allocated."""
    rng_key = jax.random.key(0)
    replay = jax.eval_shape(
        lambda: empty_replay(
            game, num_chunks=1, moves_per_chunk=1, num_games=1, policy_entries=1
        )
    )
    index = Index(
        first=jnp.int32(0),
        lengths=jnp.ones(1, jnp.int32),
        result=jnp.zeros((1, 1, 3), jnp.float16),
    )

    def differentiate(variables: Variables, replay: Replay, index: Index):
        batch = sample(game, replay, index, rng_key, few)
        _, gradient, _ = jax.vjp(
            lambda params: _loss(params, variables.batch_stats, network, batch, config),
            variables.params,
            has_aux=True,
        )
        return batch, gradient

    # The number of entries in a large batch may be too large for JAX. What is stored
    # for the gradient holds the parameters, too.
    few = 64
    stored = tree_bytes(jax.eval_shape(differentiate, variables, replay, index))
    gradient = tree_bytes(variables.params)
    return gradient + (stored - gradient) * config.batch_size // few


def _loss(params, batch_stats, network: Network, batch: Batch, config: LearnerConfig):
    prediction, batch_stats = predict_in_training(
        network, Variables(params, batch_stats), batch.observation
    )
    logits = jnp.where(
        batch.legal_action_mask,
        prediction.policy_logits,
        jnp.finfo(jnp.float32).min,
    )
    # The divergence has the gradient of the cross-entropy and is 0 at best; it is 0 too
    # where there is no policy target.
    policy = optax.losses.kl_divergence(jax.nn.log_softmax(logits), batch.policy_target)
    has_policy = batch.policy_target.any(axis=-1)
    policy = policy.sum() / jnp.maximum(has_policy.sum(), 1)
    value = value_loss(prediction.value_logits, batch.result_target).mean()
    metrics = LearnerMetrics(policy, value, jnp.float32(0))
    return policy + config.value_weight * value, (metrics, batch_stats)


def _kernels(params):
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)
