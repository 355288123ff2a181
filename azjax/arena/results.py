"""Results of matches."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azjax.arena.pairs import score_interval
from azjax.games.game_record import GameRecord, is_forfeit


class WinDrawLoss(NamedTuple):
    """Numbers of games that a player won, drew and lost."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Points per game, in [0, 1]; a draw is half a point. NaN without games."""
        if not self.games:
            return math.nan
        return (self.wins + self.draws / 2) / self.games

    @property
    def reversed(self) -> "WinDrawLoss":
        """The opponent's results."""
        return WinDrawLoss(self.losses, self.draws, self.wins)

    def __add__(self, other: "WinDrawLoss") -> "WinDrawLoss":  # pyright: ignore
        """Adds the numbers of two results."""
        return WinDrawLoss(*(a + b for a, b in zip(self, other, strict=True)))


@dataclasses.dataclass(frozen=True, eq=False)
class MatchResult:
    """N games of `player` against `opponent`, in pairs.

    Games 2i and 2i + 1 have the same opening; `player` is player 0 in the first and
    player 1 in the second.

    moves: `[N, T]` int32; actions from the initial position, opening included; -1 after
        the end.
    results: `[N]` int8; 1 if `player` won, 0 for a draw, -1 if it lost.
    faults: N texts, as in `GameRecord`.
    opening_moves: number of opening moves of each game.
    values: `[N, T]` float32; the expected result for player 0 after each move, in [-1,
        1], as an external player who was to move then saw it; NaN where it is not
        known. None for a match of compiled players.
    """

    moves: np.ndarray
    results: np.ndarray
    faults: tuple[str, ...]
    opening_moves: int
    values: np.ndarray | None = None

    @property
    def as_first(self) -> WinDrawLoss:
        """The results of `player` as player 0."""
        return _count(self.results[::2])

    @property
    def as_second(self) -> WinDrawLoss:
        """The results of `player` as player 1."""
        return _count(self.results[1::2])

    @property
    def total(self) -> WinDrawLoss:
        """The results of `player` in all games."""
        return _count(self.results)

    @property
    def pair_points(self) -> np.ndarray:
        """`[N / 2]` float64; points of `player` with each opening, 0 to 2."""
        return 1 + self.results.reshape(-1, 2).sum(axis=1) / 2

    @property
    def by_opening(self) -> WinDrawLoss:
        """The numbers of openings from which `player` scored more, as much as and less
        than the opponent, with both colors together.

        Two strong players share an opening that decides the game, which brings the
        score nearer to 1/2.
        """
        return _count(np.sign(self.pair_points - 1))

    @property
    def distinct_pairs(self) -> int:
        """The number of different pairs of games."""
        pairs = self.moves.reshape(-1, 2 * self.moves.shape[1])
        return len(np.unique(pairs, axis=0))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the score of `player`, from distinct pairs of
        games; see `score_interval`."""
        return score_interval(self.pair_points, self.distinct_pairs)

    @property
    def repeated(self) -> float:
        """The fraction of the games that went move by move as one before them."""
        return 1 - len(np.unique(self.moves, axis=0)) / len(self.moves)

    @property
    def forfeits(self) -> tuple[int, int]:
        """The numbers of games that `player` and `opponent` forfeited."""
        forfeited = np.array([is_forfeit(fault) for fault in self.faults])
        lost = self.results < 0
        return int((forfeited & lost).sum()), int((forfeited & ~lost).sum())

    def game_records(self, names: tuple[str, str]) -> list[GameRecord]:
        """Returns the games one by one.

        Args:
            names: of `player` and `opponent`.
        """
        games = []
        for number, (row, result) in enumerate(
            zip(self.moves, self.results, strict=True)
        ):
            is_swapped = number % 2 == 1
            values: Sequence[float | None] = ()
            if self.values is not None and not np.isnan(self.values[number]).all():
                known = self.values[number][row >= 0]
                values = [None if np.isnan(v) else float(v) for v in known]
            games.append(
                GameRecord(
                    names=(names[1], names[0]) if is_swapped else names,
                    moves=row[row >= 0].tolist(),
                    result=int(-result if is_swapped else result),
                    fault=self.faults[number],
                    opening_moves=self.opening_moves,
                    values=tuple(values),
                )
            )
        return games


class MatchInterrupted(KeyboardInterrupt):
    """A Ctrl-C in a match of which pairs of games were over.

    match: their results.
    """

    def __init__(self, match: MatchResult):
        super().__init__()
        self.match = match


def concatenate(results: Sequence[MatchResult]) -> MatchResult:
    """Concatenates several matches between the same players."""
    longest = max(result.moves.shape[1] for result in results)
    values = [result.values for result in results if result.values is not None]
    return MatchResult(
        moves=np.concatenate([_pad(result.moves, longest, -1) for result in results]),
        results=np.concatenate([result.results for result in results]),
        faults=tuple(fault for result in results for fault in result.faults),
        opening_moves=results[0].opening_moves,
        values=np.concatenate([_pad(each, longest, np.nan) for each in values])
        if len(values) == len(results)
        else None,
    )


def _pad(rows: np.ndarray, length: int, value: float) -> np.ndarray:
    missing = length - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing)), constant_values=value)


def _count(results: np.ndarray) -> WinDrawLoss:
    return WinDrawLoss(*(int((results == result).sum()) for result in (1, 0, -1)))
