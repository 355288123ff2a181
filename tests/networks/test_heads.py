import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.networks import (
    BoardPolicyHead,
    BoardValueHead,
    PolicyHead,
    ValueHead,
    expected_value,
    result_probabilities,
    value_loss,
)

BOARD_FEATURES = (3, 4, 5)
DENSE_FEATURES = (6,)


def rngs():
    return nnx.Rngs(jax.random.key(0))


@pytest.mark.parametrize("shape", [BOARD_FEATURES, DENSE_FEATURES, (2, 6)])
def test_the_policy_head_makes_a_logit_for_each_action(shape):
    head = PolicyHead(shape, 7, dtype=jnp.float32, rngs=rngs())
    chex.assert_shape(head(jnp.ones((2, *shape))), (2, 7))


@pytest.mark.parametrize("shape", [BOARD_FEATURES, DENSE_FEATURES])
@pytest.mark.parametrize(("kind", "num_outputs"), [("wdl", 3), ("scalar", 1)])
def test_the_value_head_makes_logits_of_its_kind(shape, kind, num_outputs):
    head = ValueHead(shape, kind, dtype=jnp.float32, rngs=rngs())
    chex.assert_shape(head(jnp.ones((2, *shape))), (2, num_outputs))


@pytest.mark.parametrize("shape", [BOARD_FEATURES, DENSE_FEATURES])
def test_a_head_of_bfloat16_features_returns_float32(shape):
    head = PolicyHead(shape, 7, dtype=jnp.bfloat16, rngs=rngs())
    logits = head(jnp.ones((2, *shape), jnp.bfloat16))
    chex.assert_type([logits, *jax.tree.leaves(nnx.state(head))], jnp.float32)


def board_policy_head(num_others=1, dtype=jnp.float32):
    return BoardPolicyHead(5, 2, num_others, dtype=dtype, rngs=rngs())


def features(height, width):
    return jax.random.normal(jax.random.key(1), (2, height, width, 5))


@pytest.mark.parametrize("num_others", [0, 2])
def test_a_board_head_has_the_same_weights_on_every_board(num_others):
    head = board_policy_head(num_others)
    for height, width in ((3, 4), (6, 5)):
        logits = head(features(height, width))
        chex.assert_shape(logits, (2, 2 * height * width + num_others))
    value_head = BoardValueHead(5, "wdl", dtype=jnp.float32, rngs=rngs())
    for shape in ((3, 4), (6, 5)):
        chex.assert_shape(value_head(features(*shape)), (2, 3))


def test_board_logits_follow_their_cells():
    head, board = board_policy_head(), features(3, 4)
    planes, turned = (
        head(x)[:, :-1].reshape(2, 3, 4, 2) for x in (board, board[:, ::-1, ::-1])
    )
    np.testing.assert_allclose(turned[:, ::-1, ::-1], planes, atol=1e-5)
    assert np.ptp(planes, axis=(1, 2)).min() > 0.1


def test_a_cell_changes_the_logits_of_others_through_pooled_features():
    head, board = board_policy_head(), features(3, 4)
    before = head(board)
    after = head(board.at[:, 0, 0].add(10.0))
    assert (jnp.abs(after - before) > 1e-3).all()


def test_board_heads_of_bfloat16_features_return_float32():
    half = features(3, 4).astype(jnp.bfloat16)
    value_head = BoardValueHead(5, "scalar", dtype=jnp.bfloat16, rngs=rngs())
    chex.assert_type(
        [board_policy_head(dtype=jnp.bfloat16)(half), value_head(half)], jnp.float32
    )
    chex.assert_shape(value_head(half), (2, 1))


def test_equal_logits_are_a_third_each():
    result = result_probabilities(jnp.zeros((2, 3)))
    np.testing.assert_allclose(result, np.full((2, 3), 1 / 3), rtol=1e-6)


def test_a_scalar_logit_gives_probabilities_of_win_and_loss():
    result = result_probabilities(jnp.log(jnp.array([[3.0]])))
    np.testing.assert_allclose(result, [[0.75, 0.0, 0.25]], rtol=1e-6)


def test_the_expected_value_is_wins_minus_losses():
    result = jnp.array([[0.5, 0.3, 0.2], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(expected_value(result), [0.3, 0, -1], rtol=1e-6)


@pytest.mark.parametrize("num_logits", [1, 3])
def test_values_stay_in_their_range_with_large_logits(num_logits):
    logits = jnp.array([[1e9], [-1e9]]) * jnp.eye(1, num_logits)
    value = expected_value(result_probabilities(logits))
    assert (jnp.abs(value) <= 1).all()


def test_the_loss_of_equal_logits_is_the_logarithm_of_their_number():
    target = jnp.array([[1.0, 0, 0], [0.2, 0.5, 0.3]])
    np.testing.assert_allclose(
        value_loss(jnp.zeros((2, 3)), target), np.log([3, 3]), rtol=1e-6
    )
    np.testing.assert_allclose(
        value_loss(jnp.zeros((2, 1)), target), np.log([2, 2]), rtol=1e-6
    )


@pytest.mark.parametrize("num_logits", [1, 3])
def test_the_loss_is_minimal_at_the_targets_expected_value(num_logits):
    target = jnp.array([[0.6, 0.3, 0.1]])
    gradient = jax.grad(lambda logits: value_loss(logits, target).sum())
    logits = jax.lax.fori_loop(
        0,
        200,
        lambda _, logits: logits - 4 * gradient(logits),
        jnp.zeros((1, num_logits)),
    )
    value = expected_value(result_probabilities(logits))
    np.testing.assert_allclose(value, [0.5], atol=1e-3)


@pytest.mark.parametrize("num_logits", [1, 3])
def test_a_certain_wrong_value_has_a_finite_loss(num_logits):
    logits = jnp.full((1, num_logits), -1e4).at[0, -1].set(1e4)
    target = jnp.array([[1.0, 0, 0]]) if num_logits == 3 else jnp.array([[0, 0, 1.0]])
    loss = value_loss(logits, target)
    assert jnp.isfinite(loss).all()
    assert loss[0] > 1e3
