"""The table of a tournament, strongest player first."""

from typing import Any, NamedTuple

import numpy as np

from azjax.arena.results import WinDrawLoss
from azjax.arena.tournament import Tournament


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
