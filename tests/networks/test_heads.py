import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.networks import (
    BoardPolicyHead,
    BoardValueHead,
    expected_value,
    result_probabilities,
    value_loss,
)


def rngs():
    return nnx.Rngs(jax.random.key(0))


def board_policy_head(num_others=1, dtype=jnp.float32):
    return BoardPolicyHead(5, 2, num_others, dtype=dtype, rngs=rngs())


def features(height, width):
    chance = np.random.default_rng(1)
    return chance.normal(size=(2, height, width, 5)).astype(np.float32)


@pytest.mark.parametrize("num_others", [0, 2])
def test_board_heads_have_the_same_weights_on_every_board_and_return_float32(
    num_others,
):
    def make():
        dtype = jnp.bfloat16
        heads = (
            board_policy_head(num_others, dtype=dtype),
            BoardValueHead(5, "wdl", dtype=dtype, rngs=rngs()),
        )
        return [
            [head(features(*shape).astype(dtype)) for head in heads] for shape in shapes
        ]

    shapes = [(3, 4), (6, 5)]
    found = jax.eval_shape(make)
    chex.assert_type(jax.tree.leaves(found), jnp.float32)
    for (height, width), logits in zip(shapes, found, strict=True):
        chex.assert_shape(logits, [(2, 2 * height * width + num_others), (2, 3)])


def test_board_logits_follow_their_cells_and_depend_on_others_through_pooling():
    @jax.jit
    def compute(board):
        head = board_policy_head()
        boards = board, board[:, ::-1, ::-1], board.at[:, 0, 0].add(10.0)
        return [head(each) for each in boards]

    before, turned, changed = jax.device_get(compute(features(3, 4)))
    assert (np.abs(changed - before) > 1e-3).all()
    planes, turned = (x[:, :-1].reshape(2, 3, 4, 2) for x in (before, turned))
    np.testing.assert_allclose(turned[:, ::-1, ::-1], planes, rtol=1e-5, atol=1e-5)
    assert np.ptp(planes, axis=(1, 2)).min() > 0.1


probabilities = jax.jit(result_probabilities)
values = jax.jit(lambda logits: expected_value(result_probabilities(logits)))
losses = jax.jit(value_loss)


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        (np.zeros((2, 3)), np.full((2, 3), 1 / 3)),
        (np.log([[3.0]]), [[0.75, 0.0, 0.25]]),  # of win and loss
    ],
)
def test_logits_give_probabilities_of_results(logits, expected):
    found = probabilities(logits.astype(np.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_expected_value_is_wins_minus_losses():
    result = np.array([[0.5, 0.3, 0.2], [0, 1, 0], [0, 0, 1]], np.float32)
    np.testing.assert_allclose(expected_value(result), [0.3, 0, -1], rtol=1e-6)


@pytest.mark.parametrize("num_logits", [1, 3])
def test_values_stay_in_their_range_with_large_logits(num_logits):
    logits = np.array([[1e9], [-1e9]], np.float32) * np.eye(1, num_logits)
    assert (np.abs(values(logits.astype(np.float32))) <= 1).all()


@pytest.mark.parametrize(("num_logits", "number"), [(3, 3), (1, 2)])
def test_the_loss_of_equal_logits_is_the_logarithm_of_their_number(num_logits, number):
    target = np.array([[1, 0, 0], [0.2, 0.5, 0.3]], np.float32)
    found = losses(np.zeros((2, num_logits), np.float32), target)
    np.testing.assert_allclose(found, np.log([number] * 2), rtol=1e-6)


@pytest.mark.parametrize("num_logits", [1, 3])
def test_the_loss_is_minimal_at_the_targets_expected_value(num_logits):
    target = np.array([[0.6, 0.3, 0.1]], np.float32)

    @jax.jit
    def minimum(logits):
        gradient = jax.grad(lambda logits: value_loss(logits, target).sum())
        return jax.lax.fori_loop(0, 200, lambda _, x: x - 4 * gradient(x), logits)

    value = values(minimum(np.zeros((1, num_logits), np.float32)))
    np.testing.assert_allclose(value, [0.5], atol=1e-3)


@pytest.mark.parametrize("num_logits", [1, 3])
def test_a_certain_wrong_value_has_a_finite_loss(num_logits):
    logits = np.full((2, num_logits), -1e4, np.float32)
    logits[:, -1] = 1e4
    target = np.eye(3, dtype=np.float32)[[0 if num_logits == 3 else 2] * 2]
    loss = losses(logits, target)
    assert np.isfinite(loss).all()
    assert (loss > 1e3).all()
