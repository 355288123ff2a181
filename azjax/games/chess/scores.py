"""Scores of positions in centipawns, as engines and annotated games have them.

The score is `400 log10((1 + v) / (1 - v))` for the expected result v in [-1, 1],
limited to 2000: a score of 100 is an expected score of 64%
(https://www.chessprogramming.org/Pawn_Advantage,_Win_Percentage,_and_Elo). It is no
count of material.
"""

import math

MAX_CENTIPAWNS = 2000
_MAX_VALUE = math.tanh(MAX_CENTIPAWNS / 800 * math.log(10))


def centipawns(value: float) -> int:
    """Returns the score of an expected result in [-1, 1]."""
    value = min(max(value, -_MAX_VALUE), _MAX_VALUE)
    return round(400 * math.log10((1 + value) / (1 - value)))


def expected_result(score: float) -> float:
    """Returns the expected result in [-1, 1] of a score (centipawns)."""
    return math.tanh(score / 800 * math.log(10))
