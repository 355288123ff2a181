import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.training.self_play import Trajectory
from azjax.training.targets import (
    horizon,
    lambda_returns,
    one_hot_result,
    soft_result,
)

# Targets are stored in float16.
TOLERANCE = 5e-4


def played(reward, terminated, value, draw, regret=None):
    """Returns the moves of B slots, `[T, B]` each; by default all are best moves."""
    regret = jnp.zeros_like(value) if regret is None else regret
    return Trajectory(
        state=None,
        action=None,
        policy=None,
        value=value,
        draw_probability=draw,
        regret=regret,
        reward=reward,
        terminated=terminated,
    )


def column(*numbers):
    """Returns the numbers of one game as `[T, 1]`."""
    return jnp.array(numbers)[:, None]


def expected(target):
    """Returns the expected results of `[T, 1, 3]` targets, `[T]`."""
    return np.asarray(target[:, 0, 0] - target[:, 0, 2])


# The third move wins.
WON = {
    "reward": column(0.0, 0.0, 1.0),
    "terminated": column(False, False, True),
    "value": column(0.1, -0.4, 0.8),
    "draw": column(0.3, 0.2, 0.1),
}


def test_td_lambda_1_gives_the_result_from_each_movers_view():
    target = lambda_returns(played(**WON), td_lambda=1.0)
    np.testing.assert_array_equal(target[:, 0], [[1, 0, 0], [0, 0, 1], [1, 0, 0]])


def test_td_lambda_0_gives_the_flipped_value_of_the_next_position():
    target = lambda_returns(played(**WON), td_lambda=0.0)
    predicted = soft_result(WON["value"], WON["draw"])[:, 0]
    np.testing.assert_allclose(target[0, 0], predicted[1][::-1], atol=TOLERANCE)
    np.testing.assert_allclose(target[1, 0], predicted[2][::-1], atol=TOLERANCE)
    np.testing.assert_array_equal(target[2, 0], [1, 0, 0])


def test_other_lambdas_mix_the_targets_backwards():
    target = lambda_returns(played(**WON), td_lambda=0.75)
    # For the mover, the last move has the value 1; the one before it, by hand,
    # -(0.25 * 0.8 + 0.75 * 1) = -0.95; the first -(0.25 * -0.4 + 0.75 * -0.95).
    np.testing.assert_allclose(expected(target), [0.8125, -0.95, 1], atol=TOLERANCE)


@pytest.mark.parametrize("td_lambda", [0.0, 0.75, 1.0])
def test_a_bad_move_does_not_count_in_earlier_targets(td_lambda):
    bad = WON | {"regret": column(0.0, 0.3, 0.0)}
    found = lambda_returns(played(**bad), td_lambda=td_lambda, max_regret=0.2)
    # The search's value before the bad move; the move before it was a good one.
    np.testing.assert_allclose(expected(found), [0.4, -0.4, 1], atol=TOLERANCE)
    counted = lambda_returns(played(**bad), td_lambda=td_lambda, max_regret=0.3)
    best = lambda_returns(played(**WON), td_lambda=td_lambda)
    np.testing.assert_array_equal(counted, best)


def test_a_move_that_wins_counts_although_the_search_preferred_another():
    won = WON | {"regret": column(0.0, 0.0, 0.1)}
    found = lambda_returns(played(**won), td_lambda=1.0)
    np.testing.assert_array_equal(found[2, 0], [1, 0, 0])


def test_a_bad_move_that_ends_the_game_does_not_count():
    drawn = WON | {"reward": column(0.0, 0.0, 0.0), "regret": column(0.0, 0.0, 0.1)}
    found = lambda_returns(played(**drawn), td_lambda=1.0)
    np.testing.assert_allclose(expected(found), [0.8, -0.8, 0.8], atol=TOLERANCE)


def test_a_drawn_game_is_a_draw_for_both():
    game = WON | {"reward": column(0.0, 0.0, 0.0)}
    target = lambda_returns(played(**game), td_lambda=1.0)
    np.testing.assert_array_equal(target[:, 0], [[0, 1, 0]] * 3)


def test_targets_do_not_cross_game_ends():
    # The second move loses, for example by an illegal action; then another game begins.
    reward = column(0.0, -1.0, 0.0, 1.0)
    terminated = column(False, True, False, True)
    found = [
        lambda_returns(
            played(
                reward,
                terminated,
                column(0.0, 0.0, *later),
                column(0.0, 0.0, *draws),
            ),
            td_lambda=0.5,
        )
        for later, draws in (((0.9, -0.9), (0.1, 0.1)), ((-0.7, 0.3), (0.0, 0.7)))
    ]
    np.testing.assert_array_equal(found[0][:2], found[1][:2])
    np.testing.assert_array_equal(found[0][1, 0], [0, 0, 1])
    assert (found[0][2] != found[1][2]).any()


@pytest.mark.parametrize("td_lambda", [0.01, 0.5, 0.8, 0.95, 0.99])
def test_the_horizon_is_the_first_move_with_negligible_weight(td_lambda):
    moves = horizon(td_lambda, 10_000)
    assert td_lambda**moves < 1e-3 <= td_lambda ** (moves - 1)


def test_the_horizon_is_between_one_move_and_the_longest_game():
    assert horizon(0.0, 500) == 1
    assert horizon(0.8, 500) == 31
    assert [horizon(td_lambda, 20) for td_lambda in (0.8, 0.9999, 1.0)] == [20, 20, 20]


def test_an_unfinished_game_is_bootstrapped_from_its_newest_position():
    value = column(0.2, -0.6)
    zeros = jnp.zeros((2, 1))
    moves = played(zeros, jnp.zeros((2, 1), bool), value, zeros)
    target = lambda_returns(moves, td_lambda=1.0)
    np.testing.assert_allclose(expected(target), [0.6, -0.6], atol=TOLERANCE)


@pytest.mark.parametrize("td_lambda", [0.0, 0.3, 1.0])
def test_targets_are_distributions(td_lambda):
    keys = jax.random.split(jax.random.key(0), 5)
    shape = (20, 50)
    moves = played(
        jax.random.randint(keys[0], shape, -1, 2).astype(jnp.float32),
        jax.random.bernoulli(keys[1], 0.2, shape),
        jax.random.uniform(keys[2], shape, minval=-1, maxval=1),
        jax.random.uniform(keys[3], shape),
        jax.random.uniform(keys[4], shape, minval=0, maxval=0.1),
    )
    target = lambda_returns(moves, td_lambda=td_lambda, max_regret=0.05)
    assert (target >= 0).all()
    np.testing.assert_allclose(target.sum(-1), 1, atol=2 * TOLERANCE)


@pytest.mark.parametrize("value", [-1.0, -0.5, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("draw", [0.0, 0.4, 1.0])
def test_a_soft_result_has_its_value_and_some_probability_of_a_draw(value, draw):
    win, tie, loss = np.asarray(soft_result(jnp.float32(value), jnp.float32(draw)))
    assert win - loss == pytest.approx(value, abs=1e-6)
    assert win + tie + loss == pytest.approx(1, abs=1e-6)
    assert tie == pytest.approx(min(draw, 1 - abs(value)), abs=1e-6)
    assert min(win, tie, loss) >= -1e-7


def test_results_are_one_hot():
    result = one_hot_result(jnp.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(result, np.eye(3))
