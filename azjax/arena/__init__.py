"""Strength: mistakes in solved positions, and matches."""

from azjax.arena.exhaustive import Solution, solve
from azjax.arena.matches import play_match, play_openings
from azjax.arena.openings import Openings, suite
from azjax.arena.records import MatchResult, Record
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
    "Openings",
    "Record",
    "Report",
    "Solution",
    "SolvedPositions",
    "evaluate",
    "grade",
    "play_match",
    "play_openings",
    "read",
    "shipped",
    "solve",
    "suite",
    "wilson_interval",
]
