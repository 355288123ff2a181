import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from azjax import games
from azjax.networks import (
    AuxiliaryHead,
    DenseTrunkConfig,
    NetworkConfig,
    Parts,
    PolicyHead,
    Variables,
    predict,
)
from azjax.players import first_network
from azjax.training import LearnerConfig
from azjax.training.learner import (
    _total_loss,
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
)
from azjax.training.sampling import uniform_sampler
from azjax.training.self_play import start_games
from azjax.training.stored_policy import store_policy

GAME = games.make("tic_tac_toe")
CONFIG = LearnerConfig(batch_size=32, learning_rate=1e-2, ema_decay=0.9)
SMALL = NetworkConfig(
    trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
)
NETWORK, FIRST = first_network(0, GAME, SMALL)


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
        learner, metrics = update(
            learner, *data, jax.random.key(step), jnp.float32(0.1)
        )
        seen.append(jax.device_get(metrics))
    assert seen[-1]["policy_loss"] < 0.8 * seen[0]["policy_loss"]
    assert seen[-1]["value_loss"] < 0.9 * seen[0]["value_loss"]
    assert all(math.isfinite(number) for metrics in seen for number in metrics.values())
    assert learner.updates == 60


def test_updates_are_deterministic(update, data):
    results = [
        update(fresh(), *data, jax.random.key(0), jnp.float32(0.5)) for _ in range(2)
    ]
    jax.tree.map(np.testing.assert_array_equal, *results)


def test_averaged_weights_follow_the_trained_ones(update, data):
    learner = fresh()
    average = jax.tree.map(np.asarray, FIRST)
    for step in range(3):
        learner, _ = update(learner, *data, jax.random.key(step), jnp.float32(0.1))
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
    arguments = (fresh(optimizer), *data, jax.random.key(0), jnp.float32(0))
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
    return optimizer.update(gradients, state, params, progress=jnp.float32(0))


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


def test_a_custom_optimizer_replaces_adamw(data):
    optimizer = optax.sgd(0.0)  # it does not depend on the share of the run
    update = sampled_update(optimizer, CONFIG)
    learner, metrics = update(
        fresh(optimizer), *data, jax.random.key(0), jnp.float32(0)
    )
    jax.tree.map(np.testing.assert_array_equal, learner.variables.params, FIRST.params)
    assert metrics["gradient_norm"] > 0
    assert isinstance(learner.variables, Variables)


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


@functools.cache
def loss_and_gradient(value_weight):
    loss = functools.partial(head_losses, value_weight=value_weight)
    return jax.jit(
        jax.value_and_grad(
            lambda params, batch: _total_loss(
                params, FIRST.batch_stats, NETWORK, batch, loss
            )[0]
        )
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


def test_the_policy_loss_is_the_mean_over_positions_with_a_policy():
    has_policy = np.arange(16) % 4 == 0
    batch = batch_of(has_policy)
    loss, _ = loss_and_gradient(0.0)(FIRST.params, batch)
    assert float(loss) == pytest.approx(
        policy_losses(batch)[has_policy].mean(), rel=1e-4
    )


def test_positions_without_a_policy_target_have_no_policy_gradient():
    """Without the value loss, other positions do not change the gradient."""
    has_policy = np.arange(16) % 4 == 0
    batch = batch_of(has_policy)
    # The other positions are replaced by those with a policy: the mean is the same.
    alone = jax.tree.map(lambda leaf: np.repeat(leaf[has_policy], 4, axis=0), batch)
    results = [loss_and_gradient(0.0)(FIRST.params, each) for each in (batch, alone)]
    assert not FIRST.batch_stats, "positions would depend on one another"
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), *results
    )


def test_the_value_loss_covers_all_positions():
    with_all, with_some = (
        loss_and_gradient(1.0)(FIRST.params, batch_of(np.arange(16) % step == 0))[0]
        - loss_and_gradient(0.0)(FIRST.params, batch_of(np.arange(16) % step == 0))[0]
        for step in (1, 4)
    )
    np.testing.assert_allclose(with_all, with_some, rtol=1e-4)


def test_a_batch_without_policy_targets_has_a_finite_loss():
    loss, gradient = loss_and_gradient(0.0)(FIRST.params, batch_of(np.zeros(16, bool)))
    assert loss == 0
    for leaf in jax.tree.leaves(gradient):
        np.testing.assert_array_equal(leaf, 0)


def test_an_update_without_policy_targets_is_finite(update, data):
    replay, index = data
    policy = jax.tree.map(jnp.zeros_like, replay.chunk.policy)
    replay = replay.replace(chunk=replay.chunk._replace(policy=policy))
    learner, metrics = update(
        fresh(), replay, index, jax.random.key(0), jnp.float32(0.1)
    )
    assert metrics["policy_loss"] == 0
    assert metrics["value_loss"] > 0
    assert all(math.isfinite(leaf.sum()) for leaf in jax.tree.leaves(learner.variables))


# Weights and auxiliary heads


def test_the_loss_is_weighted_by_sample_weights():
    batch = batch_of(np.ones(16, bool))
    loss = functools.partial(head_losses, value_weight=2.0)

    @jax.jit
    def total(batch):
        return _total_loss(FIRST.params, FIRST.batch_stats, NETWORK, batch, loss)

    first, rest = np.arange(16) == 0, np.arange(16) > 0
    totals, samples = [], []
    for weight in (np.ones(16), 5.0 * first + rest):
        sample = batch.sample._replace(weight=jnp.asarray(weight, jnp.float32))
        value, (_, sample_loss, _) = total(batch._replace(sample=sample))
        totals.append(float(value))
        samples.append(np.asarray(sample_loss))
    np.testing.assert_array_equal(*samples)
    assert totals[0] == pytest.approx(samples[0].mean(), rel=1e-5)
    assert totals[1] == pytest.approx(totals[0] + 4 * samples[0][0] / 16, rel=1e-5)


def test_unfinished_games_have_no_auxiliary_gradient():
    head = AuxiliaryHead(
        name="cells",
        make=lambda shape, rngs: PolicyHead(shape, 9, dtype=jnp.float32, rngs=rngs),
        target=lambda state, final_state: GAME.board(final_state).ravel() == 0,
        loss=lambda outputs, targets: ((outputs - targets) ** 2).mean(axis=-1),
        weight=0.5,
    )
    parts = Parts(auxiliary=(head,))
    network, variables = first_network(0, GAME, SMALL, parts)
    has_ended = np.arange(16) % 4 == 0
    batch = batch_of(np.zeros(16, bool))._replace(has_ended=jnp.asarray(has_ended))
    targets = np.zeros((16, 9), np.float32)
    targets[0] = 1
    batch = batch._replace(targets=batch.targets._replace(auxiliary={"cells": targets}))
    loss = make_loss(LearnerConfig(value_weight=0.0), parts)
    value, (metrics, _, _) = jax.jit(_total_loss, static_argnums=(2, 4))(
        variables.params, variables.batch_stats, network, batch, loss
    )
    outputs = predict_all(network, variables, batch.observation).auxiliary["cells"]
    expected = ((outputs - targets) ** 2).mean(axis=-1)[has_ended].mean()
    assert float(metrics["cells_loss"]) == pytest.approx(float(expected), rel=1e-5)
    assert float(value) == pytest.approx(0.5 * float(expected), rel=1e-5)


@pytest.mark.parametrize(
    "loss",
    [lambda o, t: ((o - t) ** 2).mean(), lambda o, t: (o - t) ** 2],
    ids=["scalar", "not reduced"],
)
def test_a_loss_must_be_one_number_for_each_position(loss):
    head = AuxiliaryHead(
        name="cells",
        make=lambda shape, rngs: PolicyHead(shape, 9, dtype=jnp.float32, rngs=rngs),
        target=lambda state, final_state: jnp.zeros(9),
        loss=loss,
    )
    parts = Parts(auxiliary=(head,))
    network, variables = first_network(0, GAME, SMALL, parts)
    batch = batch_of(np.ones(16, bool))
    targets = batch.targets._replace(auxiliary={"cells": jnp.zeros((16, 9))})
    with pytest.raises(ValueError, match=r"'cells' must be one number for each"):
        jax.eval_shape(
            lambda: _total_loss(
                variables.params,
                variables.batch_stats,
                network,
                batch._replace(targets=targets),
                make_loss(LearnerConfig(), parts),
            )
        )
