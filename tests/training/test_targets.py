from typing import NamedTuple

import jax
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


class Players(NamedTuple):
    current_player: np.ndarray


soft = jax.jit(soft_result)
returns = jax.jit(lambda_returns)


def returns_of(
    reward, terminated, value, draw, regret=None, *, td_lambda, max_regret=0.0
):
    """Returns the targets of the moves of B slots, `[T, B]` each; by default all are
    best moves. The players alternate.
    """
    player = np.broadcast_to(np.arange(len(value))[:, None] % 2, value.shape)
    regret = np.zeros_like(value) if regret is None else regret
    moves = Trajectory(
        state=Players(player),
        action=None,
        policy=None,
        value=value,
        draw_probability=draw,
        regret=regret,
        reward=reward,
        terminated=terminated,
    )
    return np.asarray(returns(moves, td_lambda=td_lambda, max_regret=max_regret))


def column(*numbers):
    """Returns the numbers of one game as `[T, 1]`."""
    numbers = np.array(numbers)[:, None]
    return numbers if numbers.dtype == bool else numbers.astype(np.float32)


def expected(target):
    """Returns the expected results of `[T, 1, 3]` targets, `[T]`."""
    return target[:, 0, 0] - target[:, 0, 2]


# The third move wins.
WON = {
    "reward": column(0.0, 0.0, 1.0),
    "terminated": column(False, False, True),
    "value": column(0.1, -0.4, 0.8),
    "draw": column(0.3, 0.2, 0.1),
}


DRAWN = WON | {"reward": column(0.0, 0.0, 0.0)}


def test_targets_are_the_result_the_flipped_next_value_or_their_mixture():
    target = returns_of(**WON, td_lambda=1.0)
    np.testing.assert_array_equal(target[:, 0], [[1, 0, 0], [0, 0, 1], [1, 0, 0]])
    target = returns_of(**DRAWN, td_lambda=1.0)
    np.testing.assert_array_equal(target[:, 0], [[0, 1, 0]] * 3)
    target = returns_of(**WON, td_lambda=0.0)
    predicted = np.asarray(soft(WON["value"], WON["draw"]))[1:, 0, ::-1]
    np.testing.assert_allclose(target[:2, 0], predicted, atol=TOLERANCE)
    np.testing.assert_array_equal(target[2, 0], [1, 0, 0])
    target = returns_of(**WON, td_lambda=0.75)
    # For the mover, the last move has the value 1; the one before it, by hand,
    # -(0.25 * 0.8 + 0.75 * 1) = -0.95; the first -(0.25 * -0.4 + 0.75 * -0.95).
    np.testing.assert_allclose(expected(target), [0.8125, -0.95, 1], atol=TOLERANCE)


@pytest.mark.parametrize("td_lambda", [0.0, 0.75, 1.0])
def test_a_bad_move_does_not_count_in_earlier_targets(td_lambda):
    bad = WON | {"regret": column(0.0, 0.3, 0.0)}
    found = returns_of(**bad, td_lambda=td_lambda, max_regret=0.2)
    # The search's value before the bad move; the move before it was a good one.
    np.testing.assert_allclose(expected(found), [0.4, -0.4, 1], atol=TOLERANCE)
    counted = returns_of(**bad, td_lambda=td_lambda, max_regret=0.3)
    best = returns_of(**WON, td_lambda=td_lambda)
    np.testing.assert_array_equal(counted, best)


def test_a_bad_last_move_counts_only_if_it_wins():
    """Although the search preferred another move."""
    regret = column(0.0, 0.0, 0.1)
    found = returns_of(**WON, regret=regret, td_lambda=1.0)
    np.testing.assert_array_equal(found[2, 0], [1, 0, 0])
    found = returns_of(**DRAWN, regret=regret, td_lambda=1.0)
    np.testing.assert_allclose(expected(found), [0.8, -0.8, 0.8], atol=TOLERANCE)


def test_targets_do_not_cross_game_ends():
    # The second move loses, for example by an illegal action; then another game begins.
    reward = column(0.0, -1.0, 0.0, 1.0)
    terminated = column(False, True, False, True)
    found = [
        returns_of(
            reward,
            terminated,
            column(0.0, 0.0, *later),
            column(0.0, 0.0, *draws),
            td_lambda=0.5,
        )
        for later, draws in (((0.9, -0.9), (0.1, 0.1)), ((-0.7, 0.3), (0.0, 0.7)))
    ]
    np.testing.assert_array_equal(found[0][:2], found[1][:2])
    np.testing.assert_array_equal(found[0][1, 0], [0, 0, 1])
    assert (found[0][2] != found[1][2]).any()


def test_the_horizon_is_the_first_move_with_negligible_weight():
    for td_lambda in (0.01, 0.5, 0.8, 0.95, 0.99):
        moves = horizon(td_lambda, 10_000)
        assert td_lambda**moves < 1e-3 <= td_lambda ** (moves - 1)
    # From one move to the longest game.
    assert (horizon(0.0, 500), horizon(0.8, 500)) == (1, 31)
    assert [horizon(td_lambda, 20) for td_lambda in (0.8, 0.9999, 1.0)] == [20, 20, 20]


def test_an_unfinished_game_is_bootstrapped_from_its_newest_position():
    value = column(0.2, -0.6)
    zeros = column(0.0, 0.0)
    target = returns_of(zeros, zeros > 0, value, zeros, td_lambda=1.0)
    np.testing.assert_allclose(expected(target), [0.6, -0.6], atol=TOLERANCE)


@pytest.mark.parametrize("td_lambda", [0.0, 0.3, 1.0])
def test_targets_are_distributions(td_lambda):
    chance, shape = np.random.default_rng(0), (20, 50)
    target = returns_of(
        chance.integers(-1, 2, shape).astype(np.float32),
        chance.uniform(size=shape) < 0.2,
        chance.uniform(-1, 1, shape).astype(np.float32),
        chance.uniform(0, 1, shape).astype(np.float32),
        chance.uniform(0, 0.1, shape).astype(np.float32),
        td_lambda=td_lambda,
        max_regret=0.05,
    )
    assert (target >= 0).all()
    np.testing.assert_allclose(target.astype(float).sum(-1), 1, atol=2 * TOLERANCE)


def test_a_soft_result_has_its_value_and_some_probability_of_a_draw():
    value, draw = np.meshgrid([-1.0, -0.5, 0.0, 0.3, 1.0], [0.0, 0.4, 1.0])
    result = np.asarray(soft(value.astype(np.float32), draw.astype(np.float32)))
    win, tie, loss = np.moveaxis(result, -1, 0)
    np.testing.assert_allclose(win - loss, value, atol=1e-6)
    np.testing.assert_allclose(win + tie + loss, 1, atol=1e-6)
    np.testing.assert_allclose(tie, np.minimum(draw, 1 - abs(value)), atol=1e-6)
    assert result.min() >= -1e-7
    # Rewards are one-hot results.
    result = jax.jit(one_hot_result)(np.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(result, np.eye(3))
