"""Statistics of games: intervals of rates and scores, and Elo ratings.

The two games with the same opening depend on each other, so pairs of games are counted:
a pair scores 0, 0.5, ..., 2 points. The probabilities of the five outcomes are the most
likely ones under a hypothesis about the score (the pentanomial model of Fishtest; Van
den Bergh, "The generalized SPRT for chess engine matches").
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

PAIR_SCORES = np.arange(5) / 4  # possible scores of a pair
_MIN_COUNT = 1e-3  # pairs of each outcome, so that no probability is 0
_BISECTION_STEPS = 60
_LOG_RATIO_95 = 1.920729  # of likelihoods at the ends of a 95% interval: chi2 / 2
_NORMAL_95 = 1.959964  # normal quantile of a 95% interval
ELO = 400 / np.log(10)  # Elo per unit of log strength
PRIOR = 0.5  # prior wins and prior losses of each pair of players
SAMPLES = 1000
_MAX_STEPS = 100
_PRECISION = 1e-6  # of log strength


def wilson_interval(rate: float, trials: int) -> tuple[float, float]:
    """Returns the 95% confidence interval of the rate of independent trials.

    It lies within [0, 1] and is not empty at the ends (Wilson 1927, "Probable
    inference, the law of succession, and statistical inference").
    """
    z = _NORMAL_95
    center = (rate + z**2 / (2 * trials)) / (1 + z**2 / trials)
    spread = (rate * (1 - rate) / trials + z**2 / (4 * trials**2)) ** 0.5
    half = z * spread / (1 + z**2 / trials)
    # Rounding must not exclude the rate itself.
    return min(rate, max(0.0, center - half)), max(rate, min(1.0, center + half))


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """Returns the 95% confidence interval of the mean of independent values that are
    not negative, by the normal approximation."""
    mean = float(np.mean(values))
    half = _NORMAL_95 * float(np.std(values)) / len(values) ** 0.5
    return max(mean - half, 0.0), mean + half


def pair_counts(
    pair_points: Sequence[float] | np.ndarray, num_pairs: float | None = None
) -> np.ndarray:
    """Returns `[5]` float64, the positive counts of pairs that scored 0, 0.5, ..., 2
    points.

    Args:
        pair_points: the player's points with each opening.
        num_pairs: sum to which the counts are scaled; None for the number of openings.
    """
    scores = np.asarray(pair_points, float)[:, None] / 2
    counts = (scores == PAIR_SCORES).sum(axis=0)
    if num_pairs is not None:
        counts = counts * (num_pairs / counts.sum())
    return counts.clip(_MIN_COUNT)


def score_interval(
    pair_points: Sequence[float] | np.ndarray, num_distinct: int
) -> tuple[float, float]:
    """Returns the 95% confidence interval of a score, in [0, 1].

    It contains the scores that the likelihood-ratio test does not reject (Owen 2001,
    "Empirical Likelihood", section 2.3). Without pairs it is [0, 1].

    Args:
        pair_points: the player's points with each opening: 0, 0.5, ..., 2.
        num_distinct: number of different pairs; deterministic players repeat games, and
            repetitions are not evidence.
    """
    if not len(pair_points):
        return 0.0, 1.0
    counts = pair_counts(pair_points, num_distinct)
    probabilities = counts / counts.sum()
    score = float(np.mean(pair_points)) / 2
    most_likely = float(probabilities @ PAIR_SCORES)

    def end(limit: float) -> float:
        inside, outside = most_likely, limit
        for _ in range(_BISECTION_STEPS // 2):
            middle = (inside + outside) / 2
            log_ratio = counts @ np.log(tilt(probabilities, middle))
            if log_ratio < _LOG_RATIO_95:
                inside = middle
            else:
                outside = middle
        return limit if outside == limit else inside

    return min(score, end(0.0)), max(score, end(1.0))


def tilt(probabilities: np.ndarray, score: float) -> np.ndarray:
    """Returns divisors of the probabilities that give them the mean `score` with
    maximum likelihood.

    The divisors are `1 + t * (outcome - score)`, with t found by bisection (Owen 2001,
    "Empirical Likelihood", section 2.9).
    """
    above = PAIR_SCORES - score
    low, high = -1 / above.max(), -1 / above.min()
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if probabilities @ (above / (1 + middle * above)) > 0:
            low = middle
        else:
            high = middle
    return 1 + (low + high) / 2 * above


@dataclasses.dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of P players.

    elo: `[P]` float64.
    low: `[P]` float64; lower ends of the 95% intervals.
    high: `[P]` float64; upper ends.
    samples: `[S, P]` float64; bootstrap samples of the ratings.
    """

    elo: np.ndarray
    low: np.ndarray
    high: np.ndarray
    samples: np.ndarray

    def superiority(self, player: int, opponent: int) -> float:
        """Returns the probability that one player is stronger than another."""
        return float((self.samples[:, player] > self.samples[:, opponent]).mean())


def rate(
    num_players: int,
    pair_points: Mapping[tuple[int, int], Sequence[float] | np.ndarray],
    *,
    num_distinct: Mapping[tuple[int, int], int] | None = None,
    anchor: tuple[int, float] | None = None,
    seed: int = 0,
) -> Ratings:
    """Computes maximum-likelihood ratings.

    The model is that of Bradley and Terry (1952, "Rank analysis of incomplete block
    designs"): 400 Elo are odds of 10 to 1, and a draw is half a win for each player.
    Every pair of players that met has half a prior win each, so that ratings are
    finite.

    The intervals come from the Bayesian bootstrap (Rubin 1981) over openings, not
    games, because games with the same opening depend on each other. The prior wins have
    random weights that may be near 0: the interval of a player that lost no game is
    unbounded in effect.

    Args:
        num_players: P.
        pair_points: for each pair of players that met, the points of the first with
            each opening, in two games: 0, 0.5, ..., 2.
        num_distinct: for each pair of players, the number of different pairs of games;
            deterministic players repeat games, and repetitions are not evidence. None:
            all differ.
        anchor: a player and its rating; None for a mean of 0.
        seed: seed of the bootstrap.

    Raises:
        ValueError: some players are not connected by games.
    """
    # The players that are connected to player 0 by games.
    known, new = {0}, {0}
    while new:
        pairs = [pair for met in pair_points for pair in (met, met[::-1])]
        new = {other for player, other in pairs if player in known} - known
        known |= new
    if len(known) < num_players:
        raise ValueError(
            f"{num_players - len(known)} of {num_players} players are not connected to "
            "the others by games"
        )
    counts = {
        met: (np.asarray(points)[:, None] / 2 == PAIR_SCORES).sum(axis=0)
        for met, points in pair_points.items()
    }
    for met, number in (num_distinct or {}).items():
        counts[met] = counts[met] * (number / counts[met].sum())
    # The wins of each player against each other one: as played, and in samples from
    # which the intervals follow.
    rng = np.random.default_rng(seed)
    best = np.zeros((1, num_players, num_players))
    drawn = np.zeros((SAMPLES, num_players, num_players))
    for (player, opponent), count in counts.items():
        prior, number = np.array([PRIOR, PRIOR]), count.sum()
        # Corrects the spread, which would be too small by (n - 1) / (n + 1).
        factor = max(number - 2, number / 2) / number
        weights = rng.gamma(factor * count, size=(SAMPLES, len(count))) / factor
        prior_weights = rng.gamma(prior, size=(SAMPLES, 2))
        for wins, pairs, first in (
            (best, count[None], prior[None]),
            (drawn, weights, prior_weights),
        ):
            won = pairs @ (2 * PAIR_SCORES) + first[:, 0]
            lost = pairs @ (2 * PAIR_SCORES[::-1]) + first[:, 1]
            # Only the results vary, not the number of games.
            scale = (2 * number + prior.sum()) / (won + lost)
            wins[:, player, opponent] = scale * won
            wins[:, opponent, player] = scale * lost
    elo = _anchored(_most_likely(best), anchor)
    samples = _anchored(_most_likely(drawn), anchor)
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    return Ratings(elo[0], np.minimum(low, elo[0]), np.maximum(high, elo[0]), samples)


def expected_score(elo_difference: float) -> float:
    """Returns the expected score of a player with this Elo advantage."""
    return 1 / (1 + 10 ** (-elo_difference / 400))


def _most_likely(wins: np.ndarray) -> np.ndarray:
    """Returns `[S, P]` log strengths with a mean of 0.

    Newton's method; the likelihood is concave.

    Args:
        wins: `[S, P, P]` float64; games that a player won against another.
    """
    num_players = wins.shape[1]
    games = wins + wins.swapaxes(1, 2)
    # The likelihood is invariant to adding a constant; this matrix fixes the mean.
    mean = np.full((num_players, num_players), 1 / num_players)
    strength = np.zeros(wins.shape[:2])
    for _ in range(_MAX_STEPS):
        difference = strength[:, :, None] - strength[:, None, :]
        expected = 1 / (1 + np.exp(-difference))
        gradient = (wins - games * expected).sum(axis=2)
        slopes = games * expected * (1 - expected)
        hessian = np.eye(num_players) * slopes.sum(axis=2)[:, :, None] - slopes
        step = np.linalg.solve(hessian + mean, gradient[:, :, None])[:, :, 0]
        # Limits steps far from the maximum.
        strength += step / np.maximum(1, np.abs(step).max(axis=1, keepdims=True))
        if np.abs(step).max() < _PRECISION:
            break
    return strength - strength.mean(axis=1, keepdims=True)


def _anchored(strength: np.ndarray, anchor: tuple[int, float] | None) -> np.ndarray:
    elo = ELO * strength
    if anchor is None:
        return elo
    player, rating = anchor
    return elo - elo[:, [player]] + rating
