import math

import jax
import numpy as np
import pytest
from flax import struct

from azjax import arena, games
from azjax.players import RandomPlayer, load

LOOK = 16  # pairs


def decided(rng, test, elo, draws=0.3):
    """Returns the verdict for a player of known strength."""
    score = arena.expected_score(elo)
    drawn = 2 * draws * min(score, 1 - score)
    points = np.zeros(0)
    while True:
        chances = rng.random((LOOK, 2))
        won, not_lost = chances < score - drawn / 2, chances < score + drawn / 2
        points = np.append(points, ((won + 0.0) + not_lost).sum(axis=1) / 2)
        verdict = test.verdict(points)
        if verdict != "undecided":
            return verdict


@pytest.mark.parametrize(("elo", "wrong"), [(0, "stronger"), (100, "not stronger")])
def test_error_rates_of_verdicts_are_within_alpha_and_beta(elo, wrong):
    test = arena.Sprt(0, 100)
    verdicts = [decided(np.random.default_rng(s), test, elo) for s in range(200)]
    # 5% of 200 are 10; 17 or more occur with a probability of 2%.
    assert verdicts.count(wrong) <= 16


def test_the_ratio_without_draws_is_a_sum_over_games():
    # Pairs with two points or none: a Bernoulli variable whose mean is the score.
    points = np.array([2.0] * 30 + [0.0] * 20)
    test = arena.Sprt(0, 50)
    score = arena.expected_score(50)
    expected = 30 * math.log(score / 0.5) + 20 * math.log((1 - score) / 0.5)
    assert test.log_likelihood_ratio(points) == pytest.approx(expected, rel=1e-2)


def test_the_ratio_of_opposite_results_changes_its_sign():
    points = np.random.default_rng(0).integers(0, 5, 40) / 2
    test = arena.Sprt(-30, 30)
    ratio = test.log_likelihood_ratio(points)
    assert test.log_likelihood_ratio(2 - points) == pytest.approx(-ratio)


def test_the_bounds_are_those_of_wald():
    assert arena.Sprt(0, 10).bounds == pytest.approx((-math.log(19), math.log(19)))
    test = arena.Sprt(0, 10, alpha=0.01, beta=0.1)
    assert test.bounds == pytest.approx((math.log(0.1 / 0.99), math.log(90)))


def test_a_test_without_games_is_undecided():
    assert arena.Sprt(0, 10).verdict([]) == "undecided"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"elo0": 10, "elo1": 10}, "must be less than elo1: 10, 10"),
        ({"elo0": 0, "elo1": math.inf}, "must be less than elo1: 0, inf"),
        ({"elo0": math.nan, "elo1": 0}, "must be less than elo1: nan, 0"),
        ({"elo0": 0, "elo1": 1, "alpha": 0}, "alpha must be a number > 0"),
        ({"elo0": 0, "elo1": 1, "beta": 0.5}, "beta must be a number > 0 and < 0.5"),
    ],
)
def test_invalid_hypotheses_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        arena.Sprt(**settings)


GAME = games.make("tic_tac_toe")


def test_a_match_stops_when_the_test_is_decided():
    looks = []
    result = arena.play_sprt(
        GAME,
        (load("network:pretrained", GAME), RandomPlayer(GAME)),
        jax.random.key(0),
        arena.Sprt(0, 100),
        max_games=400,
        games_a_look=40,
        on_look=looks.append,
    )
    assert result.verdict == "stronger"
    assert result.match.total.games == 40 * len(looks) < 400
    assert [look.verdict for look in looks[:-1]] == ["undecided"] * (len(looks) - 1)


def test_a_match_between_equals_plays_all_games():
    result = arena.play_sprt(
        GAME,
        (RandomPlayer(GAME), RandomPlayer(GAME)),
        jax.random.key(0),
        arena.Sprt(-5, 5),
        max_games=100,
        games_a_look=40,
    )
    assert result.verdict == "undecided"
    assert result.match.total.games == 100


def test_repeated_games_decide_nothing():
    test = arena.Sprt(0, 50)
    assert test.verdict([1.5] * 32) == "stronger"
    assert test.verdict([1.5] * 32, 1) == "undecided"
    moves = np.tile(np.array([[0, 1, 2], [3, 4, 5]], np.int32), (32, 1))
    results = np.tile(np.array([1, 0], np.int8), 32)
    match = arena.MatchResult(moves, results, ("",) * 64, 0, num_actions=9)
    found = arena.SprtResult(test, match)
    assert found.verdict == "undecided"
    assert 0 < found.log_likelihood_ratio < 0.2


def test_concurrent_games_are_limited():
    sizes = []

    @struct.dataclass
    class Counted(RandomPlayer):
        def choose(self, rng_key, states):
            sizes.append(states.current_player.shape[0])
            return super().choose(rng_key, states)

    arena.play_sprt(
        GAME,
        (Counted(GAME), RandomPlayer(GAME)),
        jax.random.key(0),
        arena.Sprt(-5, 5),
        max_games=16,
        games_a_look=16,
        games_at_once=4,
    )
    assert set(sizes) == {2}  # two openings, each with both colors
