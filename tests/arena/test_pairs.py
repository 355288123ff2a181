import math

import numpy as np
import pytest
from scipy import optimize, special

from azjax.arena.pairs import score_interval
from azjax.arena.solved import wilson_interval

SCORES = np.arange(5) / 4


def test_95_percent_of_intervals_contain_the_true_score():
    """The exact coverage, where the opening decides both games of a pair."""
    number = 40
    won = np.arange(number + 1)
    low, high = np.transpose(
        [score_interval([2] * wins + [0] * (number - wins), number) for wins in won]
    )
    score = np.linspace(0.2, 0.8, 61)[:, None]
    ways = np.array([math.comb(number, wins) for wins in won], float)
    chance = ways * score**won * (1 - score) ** (number - won)
    coverage = (chance * ((low <= score) & (score <= high))).sum(axis=1)
    # It depends on the score, because the number of wins is whole.
    assert coverage.min() > 0.91
    assert coverage.mean() == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    "counts", [(2, 4, 8, 10, 16), (10, 0, 20, 0, 10), (0, 0, 24, 8, 8)]
)
def test_the_ends_of_the_interval_are_rejected_at_5_percent(counts):
    """By the likelihood-ratio test, with the likelihood of another optimizer."""
    points, counts = np.repeat(2 * SCORES, counts), np.array(counts)
    frequency = counts / counts.sum()
    seen = counts > 0

    def log_ratio(score):
        found = optimize.minimize(
            lambda chances: -(counts @ np.log(chances, where=seen, out=np.zeros(5))),
            frequency.clip(0.01),
            bounds=[(1e-9, 1)] * 5,
            constraints=[
                {"type": "eq", "fun": lambda chances: chances.sum() - 1},
                {"type": "eq", "fun": lambda chances: chances @ SCORES - score},
            ],
            tol=1e-12,
        )
        best = counts[seen] @ np.log(frequency[seen])
        return best + found.fun

    for end in score_interval(points, len(points)):
        p_value = special.chdtrc(1, 2 * log_ratio(end))
        assert p_value == pytest.approx(0.05, rel=0.02)


def test_correlated_pairs_narrow_or_widen_the_interval():
    of_games = wilson_interval(0.5, 40)
    # Each player wins once with every opening: the players are equal.
    low, high = score_interval([1.0] * 20, 20)
    assert high - low < (of_games[1] - of_games[0]) / 2
    low, high = score_interval([0, 2] * 10, 20)
    assert low < of_games[0]
    assert of_games[1] < high


@pytest.mark.parametrize(("points", "end"), [(0, 0), (2, 1)])
def test_the_interval_contains_scores_of_0_and_1(points, end):
    low, high = score_interval([points] * 5, 5)
    assert min(abs(low - end), abs(high - end)) == 0
    # The probability of five such pairs is e**-1.92 at the other end.
    np.testing.assert_allclose(high - low, 1 - np.exp(-1.92 / 5), atol=0.005)


def test_repeated_pairs_do_not_narrow_the_interval_and_exchanged_players_mirror_it():
    assert score_interval([2, 0.5] * 50, 2) == score_interval([2, 0.5], 2)
    assert score_interval([], 0) == (0, 1)
    low, high = score_interval([2, 2, 1.5, 0], 4)
    turned = score_interval([0, 0, 0.5, 2], 4)
    np.testing.assert_allclose(turned, (1 - high, 1 - low), atol=1e-9)
