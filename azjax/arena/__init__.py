"""Playing strength: matches, tournaments, ratings, mistakes in solved positions."""

from azjax.arena.exhaustive import Solution, solve
from azjax.arena.matches import (
    MatchInterrupted,
    MatchResult,
    Poll,
    WinDrawLoss,
    no_poll,
    play_match,
    play_openings,
)
from azjax.arena.openings import Openings, suite
from azjax.arena.report import (
    EvaluationReport,
    PerfectMatch,
    evaluate,
    play_perfect_match,
)
from azjax.arena.solved import (
    GRADED_AT_ONCE,
    Grade,
    MistakeRate,
    SolvedPositions,
    grade,
    import_positions,
    read,
    shipped,
)
from azjax.arena.sprt import Sprt, SprtResult, play_sprt
from azjax.arena.statistics import Ratings, expected_score, rate, wilson_interval
from azjax.arena.tournament import (
    Standing,
    Tournament,
    check_starts,
    play_tournament,
    standings,
)

__all__ = [
    "GRADED_AT_ONCE",
    "EvaluationReport",
    "Grade",
    "MatchInterrupted",
    "MatchResult",
    "MistakeRate",
    "Openings",
    "PerfectMatch",
    "Poll",
    "Ratings",
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
    "no_poll",
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
