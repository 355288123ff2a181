"""What a match leaves: its games, and what they come to."""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azjax.arena.pairs import score_interval
from azjax.games.game_record import GameRecord, is_forfeit


class Record(NamedTuple):
    """Results of one player."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """The share of the points, in [0, 1]; a draw is half a point. Without a game it
        is no number."""
        if not self.games:
            return math.nan
        return (self.wins + self.draws / 2) / self.games

    @property
    def reversed(self) -> "Record":
        """The results of the opponent."""
        return Record(self.losses, self.draws, self.wins)

    def __add__(self, other: "Record") -> "Record":  # pyright: ignore
        """Returns the results in the games of both."""
        return Record(*(mine + more for mine, more in zip(self, other, strict=True)))


@dataclasses.dataclass(frozen=True, eq=False)
class MatchResult:
    """The games of `player` against `opponent`, N of them, in pairs.

    Games 2i and 2i + 1 begin with the same opening; `player` is player 0 in the first
    and player 1 in the second.

    moves: `[N, T]` int32; the actions of each game from the first position, the opening
        included; -1 after its end.
    results: `[N]` int8; 1 where `player` won, 0 where it drew, -1 where it lost.
    faults: N texts, as in `GameRecord`.
    opening_moves: how many moves of each game belong to the opening.
    """

    moves: np.ndarray
    results: np.ndarray
    faults: tuple[str, ...]
    opening_moves: int

    @property
    def as_first(self) -> Record:
        """The results of `player` as player 0."""
        return _count(self.results[::2])

    @property
    def as_second(self) -> Record:
        """The results of `player` as player 1."""
        return _count(self.results[1::2])

    @property
    def total(self) -> Record:
        """The results of `player` in all games."""
        return _count(self.results)

    @property
    def pair_points(self) -> np.ndarray:
        """`[N / 2]` float64; the points of `player` with each opening, 0 to 2."""
        return 1 + self.results.reshape(-1, 2).sum(axis=1) / 2

    @property
    def distinct_pairs(self) -> int:
        """The number of pairs that do not repeat one before them move by move."""
        pairs = self.moves.reshape(-1, 2 * self.moves.shape[1])
        return len(np.unique(pairs, axis=0))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the score of `player`, from distinct pairs of
        games; see `score_interval`."""
        return score_interval(self.pair_points, self.distinct_pairs)

    @property
    def repeated(self) -> float:
        """The share of the games that went move by move as one before them."""
        return 1 - len(np.unique(self.moves, axis=0)) / len(self.moves)

    @property
    def forfeits(self) -> tuple[int, int]:
        """The numbers of games that `player` and `opponent` forfeited."""
        forfeited = np.array([is_forfeit(fault) for fault in self.faults])
        lost = self.results < 0
        return int((forfeited & lost).sum()), int((forfeited & ~lost).sum())

    def finished(self, names: tuple[str, str]) -> list[GameRecord]:
        """Returns the games one by one.

        Args:
            names: of `player` and `opponent`.
        """
        games = []
        for number, (row, result) in enumerate(
            zip(self.moves, self.results, strict=True)
        ):
            is_swapped = number % 2 == 1
            games.append(
                GameRecord(
                    names=(names[1], names[0]) if is_swapped else names,
                    moves=row[row >= 0].tolist(),
                    result=int(-result if is_swapped else result),
                    fault=self.faults[number],
                    opening_moves=self.opening_moves,
                )
            )
        return games


def joined(results: Sequence[MatchResult]) -> MatchResult:
    """Returns the games of several matches between the same players as one match."""
    longest = max(result.moves.shape[1] for result in results)
    return MatchResult(
        moves=np.concatenate([_filled(result.moves, longest) for result in results]),
        results=np.concatenate([result.results for result in results]),
        faults=tuple(fault for result in results for fault in result.faults),
        opening_moves=results[0].opening_moves,
    )


def _filled(moves: np.ndarray, length: int) -> np.ndarray:
    missing = length - moves.shape[1]
    return np.pad(moves, ((0, 0), (0, missing)), constant_values=-1)


def _count(results: np.ndarray) -> Record:
    return Record(*(int((results == result).sum()) for result in (1, 0, -1)))
