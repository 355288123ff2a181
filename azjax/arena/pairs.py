"""Statistics of game pairs, the two games with the same opening.

The two games depend on each other, so pairs are counted: a pair scores 0, 0.5, ..., 2
points. The probabilities of the five outcomes are the most likely ones under a
hypothesis about the score (the pentanomial model of Fishtest; Van den Bergh, "The
generalized SPRT for chess engine matches").
"""

from collections.abc import Sequence

import numpy as np

PAIR_SCORES = np.arange(5) / 4  # possible scores of a pair
_MIN_COUNT = 1e-3  # pairs of each outcome, so that no probability is 0
_BISECTION_STEPS = 60
_LOG_RATIO_95 = 1.920729  # of likelihoods at the ends of a 95% interval: chi2 / 2


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
