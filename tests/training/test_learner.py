import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from training.tiny_runs import TINY_NETWORK
from untrained import untrained, untrained_shapes

from azjax import games
from azjax.networks import (
    AuxiliaryHead,
    CustomModules,
    PolicyHead,
    predict,
)
from azjax.training import LearnerConfig
from azjax.training.learner import (
    Gradient,
    apply_gradient,
    compute_gradient,
    head_losses,
    init_learner,
    learning_rate,
    make_loss,
    make_optimizer,
    make_update,
    update_bytes,
)
from azjax.training.replay import (
    Batch,
    Index,
    Sample,
    Targets,
    empty_replay,
    make_batch,
    uniform_sampler,
)
from azjax.training.self_play import start_games
from azjax.training.stored_policy import store_policy

GAME = games.make("tic_tac_toe")
CONFIG = LearnerConfig(batch_size=32, learning_rate=1e-2, ema_decay=0.9)
NETWORK, FIRST = untrained(GAME, TINY_NETWORK)


@pytest.fixture(scope="module")
def data():
    """A store of 16 positions with arbitrary results and policies."""

    @jax.jit
    def make():
        replay = empty_replay(
            GAME, num_chunks=1, moves_per_chunk=2, num_games=8, policy_entries=9
        )
        start = start_games(GAME, 16, jax.random.key(0))
        state = jax.tree.map(
            lambda leaf: leaf.reshape(2, 8, *leaf.shape[1:]), start.state
        )
        legal = jax.vmap(jax.vmap(GAME.legal_action_mask))(state)
        policy, _ = store_policy(jax.nn.one_hot(legal.argmax(-1), 9), 9)
        return replay.replace(chunk=replay.chunk._replace(state=state, policy=policy))

    index = Index(
        first=np.int32(0),
        lengths=np.full(8, 2, np.int32),
        is_new=np.zeros((2, 8), bool),
        value_target=np.eye(3, dtype=np.float16)[np.arange(16).reshape(2, 8) % 3],
        last=None,
    )
    return make(), index


@pytest.fixture(scope="module")
def update():
    return sampled_update(make_optimizer(CONFIG), CONFIG)


def sampled_update(optimizer, config):
    """An update with a uniformly sampled batch."""
    update = make_update(
        NETWORK, optimizer, make_loss(config), ema_decay=config.ema_decay
    )

    @jax.jit
    def sample_and_update(learner, replay, index, rng_key, share):
        sample = uniform_sampler().choose((), index, rng_key, config.batch_size)
        batch = make_batch(GAME, replay, index, sample)
        return update(learner, batch, share)[:2]

    return sample_and_update


@functools.cache
def fresh(optimizer=None):
    """A learner before its first update; no test donates it."""
    optimizer = optimizer or make_optimizer(CONFIG)
    return jax.jit(lambda: init_learner(FIRST, optimizer))()


def test_losses_decrease_on_fixed_positions(update, data):
    learner, seen = fresh(), []
    for step in range(60):
        learner, metrics = update(learner, *data, jax.random.key(step), np.float32(0.1))
        seen.append(jax.device_get(metrics))
    assert seen[-1]["policy_loss"] < 0.8 * seen[0]["policy_loss"]
    assert seen[-1]["value_loss"] < 0.9 * seen[0]["value_loss"]
    assert all(math.isfinite(number) for metrics in seen for number in metrics.values())
    assert learner.updates == 60


def test_updates_are_deterministic(update, data):
    results = [
        update(fresh(), *data, jax.random.key(0), np.float32(0.5)) for _ in range(2)
    ]
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_averaged_weights_follow_the_trained_ones(update, data):
    learner = fresh()
    average = jax.tree.map(np.asarray, FIRST)
    for step in range(3):
        learner, _ = update(learner, *data, jax.random.key(step), np.float32(0.1))
        # The average follows quickly at first, so that the random initial weights are
        # forgotten.
        decay = min(CONFIG.ema_decay, (step + 1) / (step + 11))
        average = jax.tree.map(
            lambda old, new, decay=decay: decay * old + (1 - decay) * np.asarray(new),
            average,
            learner.variables,
        )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        average,
        learner.averaged,
    )


@pytest.mark.slow
def test_the_bytes_of_an_update_are_estimated(data):
    config = LearnerConfig(batch_size=2048)
    optimizer = make_optimizer(config)
    update = sampled_update(optimizer, config)
    arguments = (fresh(optimizer), *data, jax.random.key(0), np.float32(0))
    used = update.lower(*arguments).compile().memory_analysis()
    said = update_bytes(
        GAME, NETWORK, FIRST, make_loss(config), batch_size=2048, auxiliary={}
    )
    assert said == pytest.approx(used.temp_size_in_bytes, rel=0.4)


rates_at = jax.jit(learning_rate, static_argnums=0)


def test_the_learning_rate_rises_linearly_and_falls_as_a_cosine():
    config = LearnerConfig(
        learning_rate=0.5, warmup_fraction=0.2, final_lr_fraction=0.1
    )
    shares = [0.0, 0.1, 0.2, 0.6, 1.0]
    rates = rates_at(config, np.float32([*shares, 2.0]))
    middle = 0.5 * (0.1 + 0.9 * 0.5)
    expected = [0.005, 0.2525, 0.5, middle, 0.05, 0.05]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


@pytest.mark.parametrize("warmup_fraction", [0.0, 1.0])
def test_warmup_can_be_empty_or_the_whole_run(warmup_fraction):
    config = LearnerConfig(learning_rate=1.0, warmup_fraction=warmup_fraction)
    rates = np.asarray(rates_at(config, np.linspace(0, 1, 11, dtype=np.float32)))
    assert max(rates) == pytest.approx(1)
    assert np.isfinite(rates).all()
    assert (
        (np.diff(rates) >= 0).all() if warmup_fraction else (np.diff(rates) <= 0).all()
    )


@functools.partial(jax.jit, static_argnums=0)
def updated(optimizer, gradients, params):
    """The first update, and the optimizer state after it."""
    state = optimizer.init(params)
    return optimizer.update(gradients, state, params, progress=np.float32(0))


def test_weights_decay_and_biases_do_not():
    config = LearnerConfig(learning_rate=0.5, warmup_fraction=0.0, weight_decay=0.1)
    optimizer = make_optimizer(config)
    params = {"kernel": np.ones((2, 2), np.float32), "bias": np.ones(2, np.float32)}
    zeros = jax.tree.map(np.zeros_like, params)
    updates, _ = updated(optimizer, zeros, params)
    # Without a gradient, AdamW subtracts rate * decay of each weight.
    np.testing.assert_allclose(updates["kernel"], -0.05, rtol=1e-6)
    np.testing.assert_array_equal(updates["bias"], 0)


def test_gradients_are_clipped_by_their_norm():
    config = LearnerConfig(max_gradient_norm=1.0, weight_decay=0.0)
    optimizer = make_optimizer(config)
    params = {"kernel": np.zeros((2, 2), np.float32)}
    moments = [
        updated(optimizer, {"kernel": np.full((2, 2), size, np.float32)}, params)[1]
        for size in (1.0, 100.0)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), *moments)


def test_a_custom_optimizer_replaces_adamw():
    optimizer = optax.sgd(0.5)  # it does not depend on the share of the run
    ones = jax.tree.map(np.ones_like, FIRST.params)
    gradient = Gradient(ones, FIRST.batch_stats, {})
    update = jax.jit(functools.partial(apply_gradient, optimizer, 0.9))
    learner, metrics = update(fresh(optimizer), np.float32(0), gradient)
    jax.tree.map(
        lambda after, first: np.testing.assert_array_equal(after, first - 0.5),
        learner.variables,
        jax.device_get(FIRST),
    )
    num_weights = sum(leaf.size for leaf in jax.tree.leaves(ones))
    np.testing.assert_allclose(metrics["gradient_norm"], num_weights**0.5, rtol=1e-5)


# Positions without a policy


@functools.cache
def seen():
    """Observations and legal actions of 16 positions."""

    @jax.jit
    def make():
        state = start_games(GAME, 16, jax.random.key(3)).state
        return jax.vmap(GAME.observe)(state), jax.vmap(GAME.legal_action_mask)(state)

    return jax.device_get(make())


def batch_of(has_policy):
    """A batch in which only some positions have a policy target."""
    observation, legal = seen()
    policy = (legal / legal.sum(axis=-1, keepdims=True)).astype(np.float32)
    zeros = np.zeros(16, np.int32)
    return Batch(
        observation=observation,
        legal_action_mask=legal,
        targets=Targets(
            policy=np.where(has_policy[:, None], policy, np.float32(0)),
            value=np.eye(3, dtype=np.float32)[np.arange(16) % 3],
            auxiliary={},
        ),
        has_ended=np.zeros(16, bool),
        sample=Sample(zeros, zeros, np.ones(16, np.float32)),
    )


predict_all = jax.jit(predict, static_argnums=0)


@jax.jit
def gradient_of(variables, batch, value_weight):
    loss = functools.partial(head_losses, value_weight=value_weight)
    return compute_gradient(NETWORK, loss, variables, batch)


def assert_close(found, expected):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
        found,
        expected,
    )


def policy_losses(batch):
    """Returns `[N]`, the divergence of each position, computed in NumPy."""
    logits = np.asarray(predict_all(NETWORK, FIRST, batch.observation).policy_logits)
    losses = []
    for row, legal, target in zip(
        logits.astype(np.float64),
        np.asarray(batch.legal_action_mask),
        np.asarray(batch.targets.policy, np.float64),
        strict=True,
    ):
        log_prior = row[legal] - np.log(np.exp(row[legal]).sum())
        known = target[legal] > 0
        aims = target[legal][known]
        losses.append((aims * (np.log(aims) - log_prior[known])).sum())
    return np.array(losses)


def test_only_positions_with_a_policy_target_have_a_policy_loss():
    has_policy = np.arange(16) % 4 == 0
    batch = batch_of(has_policy)
    gradient, _ = gradient_of(FIRST, batch, 0.0)
    mean = policy_losses(batch)[has_policy].mean()
    assert float(gradient.metrics["policy_loss"]) == pytest.approx(mean, rel=1e-4)
    # The other positions are replaced by those with a policy: the mean is the same.
    # Without the value loss, they do not change the gradient.
    alone = jax.tree.map(lambda leaf: np.repeat(leaf[has_policy], 4, axis=0), batch)
    assert not FIRST.batch_stats, "positions would depend on one another"
    assert_close(gradient.params, gradient_of(FIRST, alone, 0.0)[0].params)
    # The value loss covers all positions.
    value_loss = gradient.metrics["value_loss"]
    full, _ = gradient_of(FIRST, batch_of(np.ones(16, bool)), 1.0)
    np.testing.assert_allclose(full.metrics["value_loss"], value_loss, rtol=1e-4)


def test_without_policy_targets_there_is_no_policy_loss_and_an_update_is_finite(
    update, data
):
    gradient, _ = gradient_of(FIRST, batch_of(np.zeros(16, bool)), 0.0)
    assert float(gradient.metrics["policy_loss"]) == 0
    assert not any(map(np.any, jax.device_get(jax.tree.leaves(gradient.params))))
    replay, index = data
    policy = jax.tree.map(np.zeros_like, jax.device_get(replay.chunk.policy))
    replay = replay.replace(chunk=replay.chunk._replace(policy=policy))
    learner, metrics = jax.device_get(
        update(fresh(), replay, index, jax.random.key(0), np.float32(0.1))
    )
    assert metrics["policy_loss"] == 0
    assert metrics["value_loss"] > 0
    leaves = jax.tree.leaves(learner.variables)
    assert all(np.isfinite(leaf).all() for leaf in leaves)


# Weights and auxiliary heads


def test_the_loss_is_weighted_by_sample_weights():
    batch = batch_of(np.ones(16, bool))
    first, rest = np.arange(16) == 0, np.arange(16) > 0
    weights = np.float32([first + rest, 5 * first + rest, 16 * first])
    (once, losses), (often, others), (alone, _) = (
        gradient_of(
            FIRST, batch._replace(sample=batch.sample._replace(weight=weight)), 2.0
        )
        for weight in weights
    )
    np.testing.assert_array_equal(losses, others)
    # The gradient is the weighted mean of those of the positions.
    expected = jax.tree.map(
        lambda once, alone: np.asarray(once) + 4 / 16 * np.asarray(alone),
        once.params,
        alone.params,
    )
    assert_close(often.params, expected)


def cells_parts(loss, weight=1.0):
    head = AuxiliaryHead(
        name="cells",
        make=lambda shape, rngs: PolicyHead(shape, 9, dtype=jnp.float32, rngs=rngs),
        target=lambda state, final_state: GAME.board(final_state).ravel() == 0,
        loss=loss,
        weight=weight,
    )
    return CustomModules(auxiliary=(head,))


def test_unfinished_games_have_no_auxiliary_loss():
    parts = cells_parts(lambda o, t: ((o - t) ** 2).mean(axis=-1), weight=0.5)
    network, variables = untrained(GAME, TINY_NETWORK, parts)
    has_ended = np.arange(16) % 4 == 0
    batch = batch_of(np.zeros(16, bool))._replace(has_ended=has_ended)
    targets = np.zeros((16, 9), np.float32)
    targets[0] = 1
    batch = batch._replace(targets=batch.targets._replace(auxiliary={"cells": targets}))
    loss = make_loss(LearnerConfig(value_weight=0.0), parts)

    @jax.jit
    def compute(variables, batch):
        outputs = predict(network, variables, batch.observation).auxiliary["cells"]
        return outputs, compute_gradient(network, loss, variables, batch)

    outputs, (gradient, losses) = jax.device_get(compute(variables, batch))
    expected = np.where(has_ended, ((outputs - targets) ** 2).mean(axis=-1), 0)
    np.testing.assert_allclose(losses, 0.5 * expected, rtol=1e-5)
    mean = expected.sum() / has_ended.sum()
    np.testing.assert_allclose(gradient.metrics["cells_loss"], mean, rtol=1e-5)


@pytest.mark.parametrize(
    "loss",
    [lambda o, t: ((o - t) ** 2).mean(), lambda o, t: (o - t) ** 2],
    ids=["scalar", "not reduced"],
)
def test_a_loss_must_be_one_number_for_each_position(loss):
    parts = cells_parts(loss)
    network, variables = untrained_shapes(GAME, TINY_NETWORK, parts)
    batch = batch_of(np.ones(16, bool))
    targets = batch.targets._replace(auxiliary={"cells": np.zeros((16, 9))})
    compute = functools.partial(
        compute_gradient, network, make_loss(LearnerConfig(), parts)
    )
    with pytest.raises(ValueError, match=r"'cells' must be one number for each"):
        jax.eval_shape(compute, variables, batch._replace(targets=targets))
