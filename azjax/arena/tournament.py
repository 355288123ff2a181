"""Round-robin tournaments and their tables."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.arena.matches import (
    GAMES_AT_ONCE,
    MatchInterrupted,
    MatchResult,
    WinDrawLoss,
    check_num_games,
    play_openings,
)
from azjax.arena.openings import suite
from azjax.arena.statistics import Ratings, rate
from azjax.games import Game
from azjax.players.core import AnyPlayer, ExternalPlayer, ForfeitError, start_session


@dataclasses.dataclass(frozen=True, eq=False)
class Tournament:
    """The matches between P players.

    game: the game.
    names: the players' names.
    matches: results by the indices of player and opponent in `names`, the lower index
        first; an interrupted tournament lacks some.
    """

    game: Game
    names: tuple[str, ...]
    matches: Mapping[tuple[int, int], MatchResult]

    def against(self, player: int, opponent: int) -> WinDrawLoss:
        """Returns the results of one player against another."""
        if (player, opponent) in self.matches:
            return self.matches[player, opponent].total
        if (opponent, player) in self.matches:
            return self.matches[opponent, player].total.reversed
        return WinDrawLoss(0, 0, 0)

    def total(self, player: int) -> WinDrawLoss:
        """Returns the results of a player in all its games."""
        others = (other for other in range(len(self.names)) if other != player)
        return sum((self.against(player, o) for o in others), WinDrawLoss(0, 0, 0))

    def repeated(self, player: int) -> float:
        """Returns the fraction of a player's games that repeat a game of the same
        match."""
        fractions = [
            result.repeated for met, result in self.matches.items() if player in met
        ]
        return float(np.mean(fractions))

    def forfeits(self, player: int) -> int:
        """Returns the number of games that a player forfeited."""
        return sum(
            result.forfeits[met.index(player)]
            for met, result in self.matches.items()
            if player in met
        )

    def ratings(self, anchor: tuple[str, float] | None = None) -> Ratings:
        """Computes the players' Elo ratings.

        Args:
            anchor: a player's name and its rating; None for a mean of 0.
        """
        points = {met: result.pair_points for met, result in self.matches.items()}
        distinct = {met: result.distinct_pairs for met, result in self.matches.items()}
        fixed = anchor and (self.names.index(anchor[0]), anchor[1])
        return rate(len(self.names), points, num_distinct=distinct, anchor=fixed)


def play_tournament(
    game: Game,
    players: Mapping[str, AnyPlayer],
    rng_key: jax.Array,
    num_games: int,
    *,
    opening_moves: int | None = None,
    games_at_once: int = GAMES_AT_ONCE,
    on_games: Callable[[int], object] = lambda games: None,
    on_match: Callable[[str, str, MatchResult], object] = lambda *match: None,
) -> Tournament:
    """Plays a match between every two players, all from the same openings.

    A player that fails or makes an illegal move loses that game; the tournament
    continues.

    Args:
        game: the game.
        players: at least two, by name.
        rng_key: consumed.
        num_games: per match, an even number.
        opening_moves, games_at_once, on_games: as in `play_match`.
        on_match: called with the names of two players and their result after each
            match, also of one that Ctrl-C interrupts when some of its games are over.

    Raises:
        ValueError: an argument is out of range, the game has too few openings, or a
            player does not support it or does not start; no game is played.
    """
    if len(players) < 2:
        raise ValueError(f"a tournament requires at least two players: {len(players)}")
    check_num_games(num_games)
    for name, player in players.items():
        check_starts(name, player, game)
    opening_key, game_key = jax.random.split(rng_key)
    openings = suite(game, opening_key, num_games // 2, opening_moves)
    names = tuple(players)
    matches = {}
    for number, met in enumerate(itertools.combinations(range(len(names)), 2)):
        name, opponent = names[met[0]], names[met[1]]
        try:
            matches[met] = play_openings(
                game,
                players[name],
                players[opponent],
                openings,
                jax.random.fold_in(game_key, number),
                games_at_once=games_at_once,
                on_games=on_games,
            )
        except MatchInterrupted as interrupted:
            on_match(name, opponent, interrupted.match)
            raise
        on_match(name, opponent, matches[met])
    return Tournament(game, names, matches)


def check_starts(name: str, player: AnyPlayer, game: Game) -> None:
    """Checks that an external player can start a game."""
    if not isinstance(player, ExternalPlayer):
        return
    try:
        start_session(player, game, seed=0).close()
    except ForfeitError as error:
        raise ValueError(f"the player {name!r} does not start: {error}") from error


class Standing(NamedTuple):
    """A row of the table.

    name: the player.
    place: index of the player in the tournament's names.
    elo: rating.
    interval: 95% confidence interval of the rating.
    total: results in all games.
    repeated: fraction of games that repeat a game of the same match.
    forfeits: number of forfeited games.
    """

    name: str
    place: int
    elo: float
    interval: tuple[float, float]
    total: WinDrawLoss
    repeated: float
    forfeits: int


def standings(
    tournament: Tournament, anchor: tuple[str, float] | None = None
) -> list[Standing]:
    """Returns the rows, strongest player first.

    Args:
        tournament: the tournament.
        anchor: a player's name and its rating; None for a mean of 0.
    """
    ratings = tournament.ratings(anchor)
    return [
        Standing(
            name=tournament.names[place],
            place=place,
            elo=float(ratings.elo[place]),
            interval=(float(ratings.low[place]), float(ratings.high[place])),
            total=tournament.total(place),
            repeated=tournament.repeated(place),
            forfeits=tournament.forfeits(place),
        )
        for place in np.argsort(-ratings.elo, kind="stable").tolist()
    ]


def to_json(tournament: Tournament, table: list[Standing]) -> dict[str, Any]:
    """Returns the JSON object of `azjax arena --json`."""
    return {
        "game": repr(tournament.game),
        "opening_moves": max(
            match.opening_moves for match in tournament.matches.values()
        ),
        "players": [
            {
                "player": line.name,
                "elo": line.elo,
                "interval": list(line.interval),
                **_total_json(line.total),
                "repeated": line.repeated,
                "forfeits": line.forfeits,
            }
            for line in table
        ],
        "matches": [
            {
                "player": tournament.names[player],
                "opponent": tournament.names[opponent],
                **_total_json(match.total),
                "interval": list(match.interval),
                "as_first": list(match.as_first),
                "as_second": list(match.as_second),
                "by_opening": list(match.by_opening),
                "repeated": match.repeated,
                "forfeits": list(match.forfeits),
            }
            for (player, opponent), match in tournament.matches.items()
        ],
    }


def _total_json(total: WinDrawLoss) -> dict[str, Any]:
    return {**total._asdict(), "games": total.games, "score": total.score}
