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
def test_19_of_20_intervals_hold_the_true_score(chances):
    generator = np.random.default_rng(0)
    score = np.dot(chances, np.arange(5) / 4)
    holds = []
    for _ in range(100):
        low, high = score_interval(generator.choice(5, size=40, p=chances) / 2, 40)
        holds.append(low <= score <= high)
    assert np.mean(holds) > 0.88


def test_pairs_decided_by_their_opening_say_more_than_as_many_independent_games():
    """Each player wins once with every opening: the players are equal."""
    low, high = score_interval([1.0] * 20, 20)
    of_games = wilson_interval(0.5, 40)
    assert high - low < (of_games[1] - of_games[0]) / 2


def test_pairs_whose_games_go_together_say_less_than_as_many_independent_games():
    low, high = score_interval([0, 2] * 10, 20)
    of_games = wilson_interval(0.5, 40)
    assert low < of_games[0]
    assert of_games[1] < high


@pytest.mark.parametrize(("points", "end"), [(0, 0), (2, 1)])
def test_the_interval_holds_the_score_at_the_ends(points, end):
    low, high = score_interval([points] * 5, 5)
    assert min(abs(low - end), abs(high - end)) == 0
    # The probability of five such pairs is e**-1.92 at the other end.
    np.testing.assert_allclose(high - low, 1 - np.exp(-1.92 / 5), atol=0.005)


def test_repeated_pairs_tell_nothing_new():
    assert score_interval([2, 0.5] * 50, 2) == score_interval([2, 0.5], 2)


def test_of_no_pairs_nothing_is_known():
    assert score_interval([], 0) == (0, 1)


def test_the_interval_turns_round_with_the_players():
    low, high = score_interval([2, 2, 1.5, 0], 4)
    turned = score_interval([0, 0, 0.5, 2], 4)
    np.testing.assert_allclose(turned, (1 - high, 1 - low), atol=1e-9)
