"""Strength: mistakes in solved positions, and matches."""

from azjax.arena.exhaustive import Solution, solve
from azjax.arena.matches import MatchResult, Record, play_match
from azjax.arena.report import Report, evaluate
from azjax.arena.solved import (
    GRADED_AT_ONCE,
    Grade,
    MistakeRate,
    SolvedPositions,
    grade,
    read,
    shipped,
    wilson_interval,
)

__all__ = [
    "GRADED_AT_ONCE",
    "Grade",
    "MatchResult",
    "MistakeRate",
    "Record",
    "Report",
    "Solution",
    "SolvedPositions",
    "evaluate",
    "grade",
    "play_match",
    "read",
    "shipped",
    "solve",
    "wilson_interval",
]
