import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special

from azjax import arena
from azjax.arena import wilson_interval
from azjax.arena.statistics import score_interval

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


def simulated(rng, elo, num_pairs, draws=0.2):
    """Returns the results of a tournament between players of known strength."""
    points = {}
    for player, opponent in itertools.combinations(range(len(elo)), 2):
        score = arena.expected_score(elo[player] - elo[opponent])
        drawn = 2 * draws * min(score, 1 - score)
        drawn_share = rng.random((num_pairs, 2))
        won = drawn_share < score - drawn / 2
        not_lost = drawn_share < score + drawn / 2
        points[player, opponent] = ((won + 0.0) + not_lost).sum(axis=1) / 2
    return points


def covered(elo, num_pairs, num_trials, anchor=None):
    """Returns `[trials, P]` bool: whether the intervals contain the true ratings."""
    elo = np.array(elo, float)
    true = elo - elo.mean() if anchor is None else elo
    inside = []
    for trial in range(num_trials):
        points = simulated(np.random.default_rng(trial), elo, num_pairs)
        ratings = arena.rate(len(elo), points, anchor=anchor, seed=trial)
        inside.append((ratings.low <= true + 1e-9) & (true - 1e-9 <= ratings.high))
    return np.array(inside)


@pytest.mark.parametrize("anchor", [None, (0, 0.0)])
def test_known_ratings_lie_in_the_intervals_in_93_of_100_trials(anchor):
    inside = covered((0, 100, 200, 300), num_pairs=50, num_trials=100, anchor=anchor)
    assert inside.sum(axis=0).min() >= 93


@pytest.mark.slow
@pytest.mark.parametrize(
    ("elo", "num_pairs"), [((0, 100, 200, 300), 10), ((0, 400, 800), 50)]
)
def test_the_intervals_have_the_stated_coverage(elo, num_pairs):
    shares = covered(elo, num_pairs, num_trials=500).mean(axis=0)
    assert shares.min() > 0.93
    assert shares.max() < 0.975


def test_the_difference_of_two_players_follows_from_their_score():
    # 150 of 200 points, and half a prior win for each player.
    points = {(0, 1): np.full(100, 1.5)}
    elo = arena.rate(2, points).elo
    assert elo[0] - elo[1] == pytest.approx(400 * np.log10(150.5 / 50.5))


def test_ratings_agree_with_another_optimizer():
    """Ratings by Zermelo's iteration (1929), which increases the likelihood."""
    rng = np.random.default_rng(0)
    points = simulated(rng, (0, 50, 300, 500), 20)
    wins = np.zeros((4, 4))
    for (player, opponent), won in points.items():
        wins[player, opponent] = won.sum() + 0.5
        wins[opponent, player] = (2 - won).sum() + 0.5
    strength = np.ones(4)
    for _ in range(5000):
        together = (wins + wins.T) / (strength[:, None] + strength)
        strength = wins.sum(axis=1) / together.sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
    np.testing.assert_allclose(
        arena.rate(4, points).elo, 400 * np.log10(strength), atol=1e-3
    )


def test_games_between_other_players_count():
    # Players 0 and 2 played no match; both played 1.
    points = {(0, 1): np.full(50, 1.5), (1, 2): np.full(50, 1.5)}
    elo = arena.rate(3, points).elo
    assert elo[0] - elo[1] == pytest.approx(elo[1] - elo[2])
    assert elo[0] - elo[2] > 300


def test_a_player_that_won_every_game_has_a_finite_rating_and_a_wide_interval():
    ratings = arena.rate(2, {(0, 1): np.full(50, 2.0)}, anchor=(1, 0.0))
    # For 100 of 100 the limit of Clopper-Pearson is 570, that of Jeffreys 638.
    assert 550 < ratings.low[0] < 670
    assert 600 < ratings.elo[0] < 1200
    assert ratings.high[0] > ratings.elo[0] + 500


def test_more_games_make_intervals_narrower():
    rng = np.random.default_rng(0)
    widths = []
    for num_pairs in (10, 40, 160):
        ratings = arena.rate(3, simulated(rng, (0, 50, 100), num_pairs))
        widths.append((ratings.high - ratings.low).mean())
    np.testing.assert_allclose(widths[0] / widths[1], 2, rtol=0.25)
    np.testing.assert_allclose(widths[1] / widths[2], 2, rtol=0.25)


def test_correlated_games_widen_the_intervals():
    # The same 50%: each opening decides both games, or neither.
    decided = arena.rate(2, {(0, 1): np.array([0.0, 2.0] * 50)})
    shared = arena.rate(2, {(0, 1): np.array([0.5, 1.5] * 50)})
    widths = [ratings.high[0] - ratings.low[0] for ratings in (decided, shared)]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.2)


def test_superiority_is_the_probability_of_being_stronger():
    ratings = arena.rate(2, {(0, 1): np.array([1.5, 1.0] * 50)})
    assert ratings.superiority(0, 1) > 0.999
    assert ratings.superiority(1, 0) < 0.001


@pytest.mark.parametrize("number", [1, 2, 3])
def test_two_games_can_be_rated(number):
    ratings = arena.rate(2, {(0, 1): np.full(number, 1.5)})
    assert np.isfinite(ratings.samples).all()
    assert ratings.low[0] < 0 < ratings.high[0]


def test_unconnected_players_are_refused():
    points = {(0, 1): [1.0], (2, 3): [1.0]}
    with pytest.raises(ValueError, match="2 of 4 players are not connected"):
        arena.rate(4, points)


def test_repeated_games_are_no_evidence():
    points, once = {(0, 1): [1.5] * 64}, {(0, 1): 1}
    assert arena.rate(2, points).low[0] > 0
    ratings = arena.rate(2, points, num_distinct=once)
    assert ratings.low[0] < 0 < ratings.high[0]
