"""Statistics of games that are played in pairs, with the same opening.

The two games with an opening depend on each other, so the pair is what is counted: it
brings 0, 0.5, ..., 2 points, and how often it brings each of the five is what is most
likely under a hypothesis about the score (the pentanomial model of Fishtest, Van den
Bergh, "The generalized SPRT for chess engine matches").
"""

from collections.abc import Sequence

import numpy as np

PAIR_SCORES = np.arange(5) / 4  # the share of the points that a pair can come to
_MISSING = 1e-3  # pairs of each kind that stand for those not seen yet
_HALVINGS = 60
_FALL_95 = 1.920729  # of the log-likelihood at the ends of a 95% interval, chi2 / 2


def pair_counts(
    pair_points: Sequence[float] | np.ndarray, num_pairs: float | None = None
) -> np.ndarray:
    """Returns `[5]` float64, how many pairs brought 0, 0.5, ..., 2 points, none of them
    quite 0.

    Args:
        pair_points: what the player scored with each opening.
        num_pairs: what the counts are to add up to, if not to the number of openings.
    """
    scores = np.asarray(pair_points, float)[:, None] / 2
    counts = (scores == PAIR_SCORES).sum(axis=0)
    if num_pairs is not None:
        counts = counts * (num_pairs / counts.sum())
    return counts.clip(_MISSING)


def score_interval(
    pair_points: Sequence[float] | np.ndarray, num_distinct: int
) -> tuple[float, float]:
    """Returns the 95% confidence interval of a score, in [0, 1].

    It holds the scores that the likelihood-ratio test does not reject (Owen 2001,
    "Empirical Likelihood", section 2.3). Of no pairs it is all of [0, 1].

    Args:
        pair_points: what the player scored with each opening: 0, 0.5, ..., 2.
        num_distinct: how many of the pairs differ from those before: players without
            chance repeat their games, which tells nothing new.
    """
    if not len(pair_points):
        return 0.0, 1.0
    counts = pair_counts(pair_points, num_distinct)
    probabilities = counts / counts.sum()
    score = float(np.mean(pair_points)) / 2
    most_likely = float(probabilities @ PAIR_SCORES)

    def end(limit: float) -> float:
        inside, outside = most_likely, limit
        for _ in range(_HALVINGS // 2):
            middle = (inside + outside) / 2
            fall = counts @ np.log(tilt(probabilities, middle))
            if fall < _FALL_95:
                inside = middle
            else:
                outside = middle
        return limit if outside == limit else inside

    return min(score, end(0.0)), max(score, end(1.0))


def tilt(probabilities: np.ndarray, score: float) -> np.ndarray:
    """Returns by what to divide probabilities so that they have a mean score and are
    otherwise as likely as can be.

    The divisors are `1 + t * (outcome - score)` with the `t` for which the mean is
    right (Owen 2001, "Empirical Likelihood", section 2.9); it is found by halving.
    """
    above = PAIR_SCORES - score
    low, high = -1 / above.max(), -1 / above.min()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if probabilities @ (above / (1 + middle * above)) > 0:
            low = middle
        else:
            high = middle
    return 1 + (low + high) / 2 * above
