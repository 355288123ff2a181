import numpy as np
import pytest

from azjax.arena.pairs import score_interval
from azjax.arena.solved import wilson_interval


@pytest.mark.parametrize(
    "chances",
    [
        pytest.param([0.05, 0.1, 0.2, 0.25, 0.4], id="all"),
        pytest.param([0.25, 0.0, 0.5, 0.0, 0.25], id="independent games"),
        pytest.param([0.0, 0.0, 0.6, 0.2, 0.2], id="decided by the opening"),
    ],
)
def test_95_percent_of_intervals_contain_the_true_score(chances):
    generator = np.random.default_rng(0)
    score = np.dot(chances, np.arange(5) / 4)
    holds = []
    for _ in range(100):
        low, high = score_interval(generator.choice(5, size=40, p=chances) / 2, 40)
        holds.append(low <= score <= high)
    assert np.mean(holds) > 0.88


def test_negatively_correlated_pairs_narrow_the_interval():
    """Each player wins once with every opening: the players are equal."""
    low, high = score_interval([1.0] * 20, 20)
    of_games = wilson_interval(0.5, 40)
    assert high - low < (of_games[1] - of_games[0]) / 2


def test_positively_correlated_pairs_widen_the_interval():
    low, high = score_interval([0, 2] * 10, 20)
    of_games = wilson_interval(0.5, 40)
    assert low < of_games[0]
    assert of_games[1] < high


@pytest.mark.parametrize(("points", "end"), [(0, 0), (2, 1)])
def test_the_interval_contains_scores_of_0_and_1(points, end):
    low, high = score_interval([points] * 5, 5)
    assert min(abs(low - end), abs(high - end)) == 0
    # The probability of five such pairs is e**-1.92 at the other end.
    np.testing.assert_allclose(high - low, 1 - np.exp(-1.92 / 5), atol=0.005)


def test_repeated_pairs_do_not_narrow_the_interval():
    assert score_interval([2, 0.5] * 50, 2) == score_interval([2, 0.5], 2)


def test_the_interval_without_pairs_is_0_to_1():
    assert score_interval([], 0) == (0, 1)


def test_exchanging_the_players_mirrors_the_interval():
    low, high = score_interval([2, 2, 1.5, 0], 4)
    turned = score_interval([0, 0, 0.5, 2], 4)
    np.testing.assert_allclose(turned, (1 - high, 1 - low), atol=1e-9)
