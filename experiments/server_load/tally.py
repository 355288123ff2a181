"""Counts of the visitors' requests, answers and errors."""

import collections
import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass
class Tally:
    """Counts of the visitors' requests, answers and errors."""

    games: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    lost_games: int = 0
    reconnections: int = 0
    pages: int = 0
    attacks: int = 0
    move_seconds: list[float] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Returns the printed summary."""
        milliseconds = 1000 * np.array(self.move_seconds or [np.nan])
        return {
            "games": dict(self.games),
            "moves": len(self.move_seconds),
            "lost_games": self.lost_games,
            "reconnections": self.reconnections,
            "pages": self.pages,
            "attacks": self.attacks,
            "median_move_ms": round(float(np.median(milliseconds)), 1),
            "p95_move_ms": round(float(np.quantile(milliseconds, 0.95)), 1),
            "longest_move_ms": round(float(milliseconds.max()), 1),
            "errors": self.errors[:10],
        }
