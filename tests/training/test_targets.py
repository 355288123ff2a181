import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.training.targets import one_hot_result, result_targets, soft_result


def column(*numbers):
    """One game's numbers, `[T, 1]`."""
    return jnp.array(numbers)[:, None]


def expected(target):
    """The expected result of `[T, 1, 3]` targets, `[T]`."""
    return np.asarray(target[:, 0, 0] - target[:, 0, 2])


# The third move wins.
WON = {
    "reward": column(0.0, 0.0, 1.0),
    "terminated": column(False, False, True),
    "value": column(0.1, -0.4, 0.8),
    "draw": column(0.3, 0.2, 0.1),
}


def test_trace_1_gives_the_result_from_each_movers_view():
    target, known = result_targets(**WON, trace=1.0)
    np.testing.assert_array_equal(target[:, 0], [[1, 0, 0], [0, 0, 1], [1, 0, 0]])
    assert known.all()


def test_trace_0_gives_the_next_positions_value_seen_from_the_other_side():
    target, _ = result_targets(**WON, trace=0.0)
    opinion = soft_result(WON["value"], WON["draw"])[:, 0]
    np.testing.assert_allclose(target[0, 0], opinion[1][::-1], atol=1e-6)
    np.testing.assert_allclose(target[1, 0], opinion[2][::-1], atol=1e-6)
    np.testing.assert_array_equal(target[2, 0], [1, 0, 0])


def test_in_between_the_targets_are_mixed_backwards():
    target, _ = result_targets(**WON, trace=0.75)
    # To the mover the last move is worth 1; the one before it, by hand,
    # -(0.25 * 0.8 + 0.75 * 1) = -0.95; the first -(0.25 * -0.4 + 0.75 * -0.95).
    np.testing.assert_allclose(expected(target), [0.8125, -0.95, 1], atol=1e-6)


def test_a_drawn_game_is_a_draw_to_both():
    game = WON | {"reward": column(0.0, 0.0, 0.0)}
    target, known = result_targets(**game, trace=1.0)
    np.testing.assert_array_equal(target[:, 0], [[0, 1, 0]] * 3)
    assert known.all()


def test_what_comes_after_a_games_end_does_not_reach_into_it():
    # The second move loses, by an illegal move say; then another game begins.
    reward = column(0.0, -1.0, 0.0, 1.0)
    terminated = column(False, True, False, True)
    targets = [
        result_targets(
            reward, terminated, column(0.0, 0.0, *later), column(0.0, 0.0, *draws), 0.5
        )[0]
        for later, draws in (((0.9, -0.9), (0.1, 0.1)), ((-0.7, 0.3), (0.0, 0.7)))
    ]
    np.testing.assert_array_equal(targets[0][:2], targets[1][:2])
    np.testing.assert_array_equal(targets[0][1, 0], [0, 0, 1])
    assert (targets[0][2] != targets[1][2]).any()


def test_a_result_is_known_where_the_games_end_lies_in_the_moves():
    terminated = jnp.array([[0, 0], [1, 0], [0, 1], [0, 0]], bool)
    zeros = jnp.zeros((4, 2))
    _, known = result_targets(zeros, terminated, zeros, zeros, 1.0)
    np.testing.assert_array_equal(known, [[1, 1], [1, 1], [0, 1], [0, 0]])


def test_an_unfinished_game_gets_what_was_thought_last():
    value = column(0.2, -0.6)
    zeros = jnp.zeros((2, 1))
    target, known = result_targets(zeros, jnp.zeros((2, 1), bool), value, zeros, 1.0)
    np.testing.assert_allclose(expected(target), [0.6, -0.6], atol=1e-6)
    assert not known.any()


@pytest.mark.parametrize("trace", [0.0, 0.3, 1.0])
def test_targets_are_distributions(trace):
    keys = jax.random.split(jax.random.key(0), 4)
    shape = (20, 50)
    target, _ = result_targets(
        jax.random.randint(keys[0], shape, -1, 2).astype(jnp.float32),
        jax.random.bernoulli(keys[1], 0.2, shape),
        jax.random.uniform(keys[2], shape, minval=-1, maxval=1),
        jax.random.uniform(keys[3], shape),
        trace,
    )
    assert (target >= 0).all()
    np.testing.assert_allclose(target.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("value", [-1.0, -0.5, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("draw", [0.0, 0.4, 1.0])
def test_a_soft_result_agrees_with_its_value_and_leaves_room_for_draws(value, draw):
    win, tie, loss = np.asarray(soft_result(jnp.float32(value), jnp.float32(draw)))
    assert win - loss == pytest.approx(value, abs=1e-6)
    assert win + tie + loss == pytest.approx(1, abs=1e-6)
    assert tie == pytest.approx(min(draw, 1 - abs(value)), abs=1e-6)
    assert min(win, tie, loss) >= -1e-7


def test_results_are_win_draw_and_loss():
    result = one_hot_result(jnp.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(result, np.eye(3))
