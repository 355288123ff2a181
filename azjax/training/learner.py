"""Losses, gradients, updates and averaged weights."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from azjax.devices import jit_network
from azjax.games import Game
from azjax.networks import (
    AuxiliaryHead,
    CustomModules,
    Network,
    Prediction,
    Variables,
    policy_loss,
    predict_in_training,
    value_loss,
)
from azjax.search import tree_bytes
from azjax.search.keys import split_batch
from azjax.training.config import LearnerConfig
from azjax.training.replay import Batch, Index, Sample, empty_replay, make_batch

_FIRST_RATE = 0.01  # of the peak; a rate of 0 would waste the first update
_STEPS = 1_000_000  # resolution of the schedule over a run


@struct.dataclass
class LearnerState:
    """The learner's state.

    variables: the trained network.
    averaged: moving average of the variables, used in play and evaluation.
    opt_state: the optimizer's state.
    updates: `[]` int32; number of updates.
    """

    variables: Variables
    averaged: Variables
    opt_state: optax.OptState
    updates: jax.Array


class HeadLoss(NamedTuple):
    """The loss of one head.

    loss: `[N]` float32 per position; 0 without a target.
    has_target: `[N]` bool; the loss is averaged over these positions.
    weight: in the sum of all heads.
    """

    loss: jax.Array
    has_target: jax.Array
    weight: float


# Maps `(prediction, batch)` to losses by name, for any batch size; the metrics contain
# `NAME_loss`.
Loss = Callable[[Prediction, Batch], Mapping[str, HeadLoss]]


def learning_rate(config: LearnerConfig, progress: jax.Array | float) -> jax.Array:
    """Returns the learning rate at a fraction of the run: linear warmup, then a cosine.

    Args:
        config: peak rate, warmup fraction and final fraction.
        progress: fraction of the run that is done, in [0, 1].
    """
    highest = config.learning_rate
    first = _FIRST_RATE * highest
    if config.warmup_fraction == 1:
        schedule = optax.linear_schedule(first, highest, _STEPS)
    else:
        schedule = optax.warmup_cosine_decay_schedule(
            init_value=first,
            peak_value=highest,
            warmup_steps=round(config.warmup_fraction * _STEPS),
            decay_steps=_STEPS,
            end_value=config.final_lr_fraction * highest,
        )
    return jnp.asarray(schedule(jnp.clip(progress, 0.0, 1.0) * _STEPS))


def make_optimizer(config: LearnerConfig) -> optax.GradientTransformationExtraArgs:
    """Returns AdamW with a learning rate that follows the progress of the run.

    Its `update` takes the fraction of the run that is done as the extra argument
    `progress`, `[]` in [0, 1].

    Example:
        >>> config = training.LearnerConfig(learning_rate=0.1, warmup_fraction=0.5)
        >>> optimizer = training.make_optimizer(config)
        >>> weight = jnp.ones(())
        >>> for progress in (0.25, 0.5, 1.0):
        ...     state = optimizer.init(weight)
        ...     step, _ = optimizer.update(weight, state, weight, progress=progress)
        ...     print(f"{step:.2f}")
        -0.05
        -0.10
        -0.00
    """

    def scale_by_progress(updates, state, params=None, **extra_args):
        del params
        rate = learning_rate(config, extra_args["progress"])
        return jax.tree.map(lambda update: -rate * update, updates), state

    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm),
        optax.scale_by_adam(b2=0.99),
        optax.add_decayed_weights(
            config.weight_decay,
            mask=lambda params: jax.tree.map(lambda leaf: leaf.ndim > 1, params),
        ),
        optax.GradientTransformationExtraArgs(
            lambda params: optax.EmptyState(), scale_by_progress
        ),
    )


def init_learner(
    variables: Variables, optimizer: optax.GradientTransformation
) -> LearnerState:
    """Returns the initial learner state."""
    return LearnerState(
        # Copies, because an update donates the learner.
        variables=jax.tree.map(jnp.copy, variables),
        averaged=jax.tree.map(jnp.copy, variables),
        opt_state=optimizer.init(variables.params),
        updates=jnp.int32(0),
    )


def head_losses(
    prediction: Prediction,
    batch: Batch,
    *,
    value_weight: float = 1.0,
    auxiliary: Sequence[AuxiliaryHead] = (),
) -> dict[str, HeadLoss]:
    """Computes the loss of every head, by name.

    Args:
        prediction: for the batch's observations.
        batch: N positions with their targets.
        value_weight: weight of the value loss relative to the policy loss.
        auxiliary: the auxiliary heads.
    """
    targets = batch.targets
    losses = {
        "policy": HeadLoss(
            policy_loss(
                prediction.policy_logits, batch.legal_action_mask, targets.policy
            ),
            targets.policy.any(axis=-1),
            1.0,
        ),
        "value": HeadLoss(
            value_loss(prediction.value_logits, targets.value),
            jnp.ones_like(batch.has_ended),
            value_weight,
        ),
    }
    for head in auxiliary:
        outputs, has_ended = prediction.auxiliary[head.name], batch.has_ended
        loss = head.loss(outputs, targets.auxiliary[head.name])
        if loss.shape == has_ended.shape:  # another shape is rejected later
            loss = jnp.where(has_ended, loss, 0.0)
        losses[head.name] = HeadLoss(loss, has_ended, head.weight)
    return losses


def make_loss(config: LearnerConfig, modules: CustomModules | None = None) -> Loss:
    """Returns `head_losses` with the weights of the settings and the auxiliary heads.

    Example:
        A loss for `train` in which the value of a likely draw does not count:

        >>> losses = training.make_loss(training.LearnerConfig())
        >>> def loss(prediction, batch):
        ...     found = losses(prediction, batch)
        ...     value, counts = found["value"], batch.targets.value[:, 1] < 0.5
        ...     value = training.HeadLoss(value.loss * counts, counts, value.weight)
        ...     return {**found, "value": value}
        >>> prediction = networks.predict(network, variables, batch.observation)
        >>> loss(prediction, batch)["value"].loss.shape
        (16,)
    """
    return functools.partial(
        head_losses,
        value_weight=config.value_weight,
        auxiliary=(modules or CustomModules()).auxiliary,
    )


class Gradient(NamedTuple):
    """The results of a batch that an update uses.

    params: gradient of the loss.
    batch_stats: the network's batch statistics after the batch.
    metrics: scalars by name.
    """

    params: Any
    batch_stats: Any
    metrics: dict[str, jax.Array]


def compute_gradient(
    network: Network,
    loss: Loss,
    variables: Variables,
    batch: Batch,
    *,
    num_lanes: int = 1,
) -> tuple[Gradient, jax.Array]:
    """Returns the gradient, and `[N]` the loss of each position: the weighted sum over
    heads, before the sample weight.

    Args:
        network: its structure.
        loss: of the batch.
        variables: of the network.
        batch: lane by lane, equally many positions each; the loss is the mean over
            lanes.
        num_lanes: number of lanes in the batch.
    """
    # The gradient of the first result by the first argument; `has_aux`: the function
    # returns the loss and other results.
    (_, (metrics, sample_loss, batch_stats)), gradient = jax.value_and_grad(
        _total_loss, has_aux=True
    )(
        variables.params,
        variables.batch_stats,
        network,
        batch,
        loss,
        num_lanes=num_lanes,
    )
    return Gradient(gradient, batch_stats, metrics), sample_loss


def apply_gradient(
    optimizer: optax.GradientTransformation,
    ema_decay: float,
    learner: LearnerState,
    progress: jax.Array,
    gradient: Gradient,
) -> tuple[LearnerState, dict[str, jax.Array]]:
    """Updates the learner; returns it with its metrics.

    Args:
        optimizer: receives `progress` if it takes extra arguments.
        ema_decay: final decay of the average; smaller in the first updates.
        learner: before the update.
        progress: `[]` float32, fraction of the run that is done, in [0, 1].
        gradient: of its variables.
    """
    variables = learner.variables
    updates, opt_state = optax.with_extra_args_support(optimizer).update(
        gradient.params, learner.opt_state, variables.params, progress=progress
    )
    params = optax.apply_updates(variables.params, updates)
    variables = variables._replace(params=params, batch_stats=gradient.batch_stats)
    count = learner.updates + 1
    # A small initial decay, so that the average forgets the random initial weights.
    decay = jnp.minimum(ema_decay, count.astype(jnp.float32) / (count + 10))
    # decay * averaged + (1 - decay) * variables
    averaged: Any = optax.incremental_update(variables, learner.averaged, 1 - decay)
    learner = LearnerState(variables, averaged, opt_state, count)
    return learner, {
        **gradient.metrics,
        "gradient_norm": optax.tree.norm(gradient.params),
        "weight_norm": optax.tree.norm(variables),
    }


def make_update(
    network: Network,
    optimizer: optax.GradientTransformation,
    loss: Loss,
    *,
    ema_decay: float,
):
    """Returns a jitted `(learner, batch, progress) -> (learner, metrics, sample_loss)`.

    `progress` is the fraction of the run that is done, `[]` float32 in [0, 1], passed
    to the optimizer; `metrics` are scalars by name; `sample_loss`, `[N]`, is
    the weighted sum of each position's losses, before the sample weight. The learner is
    donated. Call it from a Python loop: XLA's CPU backend computes gradients of
    convolutions far slower inside `lax.scan`. (`azjax.train` has two programs in its
    place, see `Algorithm`.)
    """

    def update(learner: LearnerState, batch: Batch, progress: jax.Array):
        gradient, sample_loss = compute_gradient(
            network, loss, learner.variables, batch
        )
        learner, metrics = apply_gradient(
            optimizer, ema_decay, learner, progress, gradient
        )
        return learner, metrics, sample_loss

    return jit_network(update, donate_argnums=0)


def update_bytes(
    game: Game,
    network: Network,
    variables: Variables,
    loss: Loss,
    *,
    batch_size: int,
    auxiliary: Sequence[AuxiliaryHead],
) -> int:
    """Estimates the bytes of an update besides its arguments: batch, residuals and
    gradient; allocates nothing."""
    # A small batch, scaled up: shapes of large ones may overflow in JAX. The residuals
    # of the gradient include the parameters.
    few = 64

    def differentiate(variables: Variables):
        batch = _empty_batch(game, few, auxiliary)
        _, gradient, _ = jax.vjp(
            lambda params: _total_loss(
                params, variables.batch_stats, network, batch, loss
            ),
            variables.params,
            has_aux=True,
        )
        return batch, gradient

    stored = tree_bytes(jax.eval_shape(differentiate, variables))
    gradient = tree_bytes(variables.params)
    return gradient + (stored - gradient) * batch_size // few


def _empty_batch(game: Game, size: int, auxiliary: Sequence[AuxiliaryHead]) -> Batch:
    """Returns a batch with meaningful shapes only."""
    replay = empty_replay(
        game, num_chunks=1, moves_per_chunk=1, num_games=1, policy_entries=1
    )
    one = jnp.zeros((1, 1), jnp.int32)
    index = Index(
        first=jnp.int32(0),
        lengths=jnp.ones(1, jnp.int32),
        is_new=jnp.ones((1, 1), bool),
        value_target=jnp.zeros((1, 1, 3), jnp.float16),
        last=one,
    )
    row = jnp.zeros(size, jnp.int32)
    sample = Sample(row, row, jnp.ones(size, jnp.float32))
    return make_batch(game, replay, index, sample, auxiliary)


def _total_loss(
    params, batch_stats, network: Network, batch: Batch, loss: Loss, *, num_lanes=1
):
    """Returns the loss of a batch; and its metrics, the loss of each position, and the
    network's batch statistics."""
    prediction, batch_stats = predict_in_training(
        network, Variables(params, batch_stats), batch.observation
    )
    weight, metrics = batch.sample.weight, {}
    total, sample_loss = 0.0, jnp.zeros_like(weight)
    for name, head in loss(prediction, batch).items():
        if not isinstance(head, HeadLoss):
            kind = type(head).__name__
            raise ValueError(f"the loss {name!r} must be a HeadLoss: {kind}")
        shapes = jnp.shape(head.loss), jnp.shape(head.has_target)
        if shapes != (weight.shape, weight.shape):
            raise ValueError(
                f"the loss {name!r} must be one number for each position, "
                f"{weight.shape}: its loss and has_target are {shapes[0]} and "
                f"{shapes[1]}"
            )
        # The mean over a lane's positions with a target, then the mean over the lanes.
        weighted, losses, has_target = split_batch(
            (weight * head.loss, head.loss, head.has_target), num_lanes
        )
        number = jnp.maximum(has_target.sum(axis=1), 1)
        metrics[f"{name}_loss"] = (losses.sum(axis=1) / number).mean()
        total += head.weight * (weighted.sum(axis=1) / number).mean()
        sample_loss += head.weight * head.loss
    return total, (metrics, sample_loss, batch_stats)
