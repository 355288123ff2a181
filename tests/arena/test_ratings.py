import itertools

import numpy as np
import pytest

from azjax import arena


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
    shares = covered(elo, num_pairs, num_trials=1000).mean(axis=0)
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
