"""The sequential probability ratio test (SPRT) of two players."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple

import jax
import numpy as np

from azjax.arena.matches import (
    GAMES_AT_ONCE,
    MatchInterrupted,
    MatchResult,
    check_num_games,
    concatenate,
    play_openings,
)
from azjax.arena.openings import suite
from azjax.arena.statistics import expected_score, pair_counts, tilt
from azjax.games import Game
from azjax.players.core import AnyPlayer
from azjax.settings import Settings, Within

GAMES_A_LOOK = 64  # games between two tests
Verdict = Literal["stronger", "not stronger", "undecided"]


@dataclasses.dataclass(frozen=True)
class Sprt(Settings):
    """A test of two hypotheses about the Elo advantage of a player.

    Attributes:
        elo0: advantage under H0.
        elo1: advantage under H1, more than `elo0`.
        alpha: probability of accepting H1 if H0 holds.
        beta: probability of accepting H0 if H1 holds.
    """

    elo0: float
    elo1: float
    alpha: Annotated[float, Within(gt=0, lt=0.5)] = 0.05
    beta: Annotated[float, Within(gt=0, lt=0.5)] = 0.05

    def __post_init__(self) -> None:
        """Checks the values."""
        if not -math.inf < self.elo0 < self.elo1 < math.inf:
            raise ValueError(
                f"elo0 of a sequential test must be less than elo1: "
                f"{self.elo0:g}, {self.elo1:g}"
            )
        super().__post_init__()

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted (Wald 1945,
        "Sequential tests of statistical hypotheses")."""
        return (
            math.log(self.beta / (1 - self.alpha)),
            math.log((1 - self.beta) / self.alpha),
        )

    def log_likelihood_ratio(
        self,
        pair_points: Sequence[float] | np.ndarray,
        num_distinct: int | None = None,
    ) -> float:
        """Returns the log-likelihood ratio of H1 to H0.

        This is the generalized test with the pentanomial model, as in Fishtest (Van den
        Bergh, "The generalized SPRT for chess engine matches"): outcomes of game pairs
        are counted, and their probabilities are the most likely ones under each
        hypothesis.

        Args:
            pair_points: the player's points with each opening: 0, 0.5, ..., 2.
            num_distinct: number of different pairs, as for `score_interval`; None: all.
        """
        counts = pair_counts(pair_points, num_distinct)
        hypotheses = expected_score(self.elo0), expected_score(self.elo1)
        zero, one = (tilt(counts / counts.sum(), score) for score in hypotheses)
        return float(counts @ np.log(zero / one))

    def verdict(
        self,
        pair_points: Sequence[float] | np.ndarray,
        num_distinct: int | None = None,
    ) -> Verdict:
        """Returns the accepted hypothesis, or `undecided`; arguments as of
        `log_likelihood_ratio`."""
        lower, upper = self.bounds
        ratio = self.log_likelihood_ratio(pair_points, num_distinct)
        if ratio >= upper:
            return "stronger"
        return "not stronger" if ratio <= lower else "undecided"


class SprtResult(NamedTuple):
    """The state or result of a sequential test.

    test: the test.
    match: the games played.
    """

    test: Sprt
    match: MatchResult

    @property
    def log_likelihood_ratio(self) -> float:
        """The log-likelihood ratio of H1 to H0, from distinct pairs of games."""
        match = self.match
        return self.test.log_likelihood_ratio(match.pair_points, match.distinct_pairs)

    @property
    def verdict(self) -> Verdict:
        """The accepted hypothesis, or `undecided`."""
        return self.test.verdict(self.match.pair_points, self.match.distinct_pairs)


def play_sprt(
    game: Game,
    players: tuple[AnyPlayer, AnyPlayer],
    rng_key: jax.Array,
    test: Sprt,
    *,
    max_games: int,
    opening_moves: int | None = None,
    games_a_look: int = GAMES_A_LOOK,
    games_at_once: int = GAMES_AT_ONCE,
    on_look: Callable[[SprtResult], object] = lambda result: None,
) -> SprtResult:
    """Plays a match until the test is decided or `max_games` are played.

    Args:
        game: the game.
        players: the player that may be stronger, and its opponent.
        rng_key: consumed.
        test: the test.
        max_games: an even number.
        opening_moves: as in `play_match`.
        games_a_look: games between two tests, an even number.
        games_at_once: as in `play_match`.
        on_look: called with the result after each test, also after one of the games
            that are over when Ctrl-C interrupts.
    """
    check_num_games(max_games)
    check_num_games(games_a_look)
    opening_key, game_key = jax.random.split(rng_key)
    openings = suite(game, opening_key, max_games // 2, opening_moves)
    result, played = None, []
    for first in range(0, len(openings), games_a_look // 2):
        rows = np.arange(first, min(first + games_a_look // 2, len(openings)))
        look_key = jax.random.fold_in(game_key, first)
        chunk = openings.take(rows)
        try:
            match = play_openings(
                game, *players, chunk, look_key, games_at_once=games_at_once
            )
            played.append(match)
        except MatchInterrupted as interrupted:
            on_look(SprtResult(test, concatenate([*played, interrupted.match])))
            raise
        result = SprtResult(test, concatenate(played))
        on_look(result)
        if result.verdict != "undecided":
            break
    assert result is not None
    return result
