"""Strength: mistakes in solved positions, and matches."""

from azjax.arena.exhaustive import Solution, solve
from azjax.arena.matches import MatchResult, Record, play_match
from azjax.arena.report import Report, evaluate
from azjax.arena.solved import (
    Grade,
    MistakeRate,
    SolvedPositions,
    grade,
    read,
    shipped,
    wilson_interval,
)

__all__ = [
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
