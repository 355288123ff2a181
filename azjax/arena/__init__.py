"""Playing strength: matches, tournaments, ratings, mistakes in solved positions."""

from azjax.arena.exhaustive import Solution, solve
from azjax.arena.matches import play_match, play_openings
from azjax.arena.openings import Openings, suite
from azjax.arena.perfect_match import PerfectMatch, play_perfect_match
from azjax.arena.poll import Poll
from azjax.arena.ratings import Ratings, expected_score, rate
from azjax.arena.report import Report, evaluate
from azjax.arena.results import MatchInterrupted, MatchResult, WinDrawLoss
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
from azjax.arena.sprt import Sprt, SprtResult, play_sprt
from azjax.arena.stored_positions import import_positions
from azjax.arena.tournament import (
    Standing,
    Tournament,
    check_starts,
    play_tournament,
    standings,
)

__all__ = [
    "GRADED_AT_ONCE",
    "Grade",
    "MatchInterrupted",
    "MatchResult",
    "MistakeRate",
    "Openings",
    "PerfectMatch",
    "Poll",
    "Ratings",
    "Report",
    "Solution",
    "SolvedPositions",
    "Sprt",
    "SprtResult",
    "Standing",
    "Tournament",
    "WinDrawLoss",
    "check_starts",
    "evaluate",
    "expected_score",
    "grade",
    "import_positions",
    "play_match",
    "play_openings",
    "play_perfect_match",
    "play_sprt",
    "play_tournament",
    "rate",
    "read",
    "shipped",
    "solve",
    "standings",
    "suite",
    "wilson_interval",
]
