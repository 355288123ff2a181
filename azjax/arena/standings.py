"""What a tournament came to: a table of the players, strongest first."""

from typing import Any, NamedTuple

import numpy as np

from azjax.arena.results import Record
from azjax.arena.tournament import Tournament


class Standing(NamedTuple):
    """A line of the table.

    name: the player.
    place: of the player among the tournament's names.
    elo: its rating.
    interval: where the rating lies with 95% confidence.
    record: its results in all games.
    repeated: the share of its games that repeat one of the same match.
    forfeits: how many games it forfeited.
    """

    name: str
    place: int
    elo: float
    interval: tuple[float, float]
    record: Record
    repeated: float
    forfeits: int


def standings(
    tournament: Tournament, anchor: tuple[str, float] | None = None
) -> list[Standing]:
    """Returns the players, strongest first.

    Args:
        tournament: what was played.
        anchor: a player's name and its rating; None for a mean of 0.
    """
    ratings = tournament.ratings(anchor)
    return [
        Standing(
            name=tournament.names[place],
            place=place,
            elo=float(ratings.elo[place]),
            interval=(float(ratings.low[place]), float(ratings.high[place])),
            record=tournament.total(place),
            repeated=tournament.repeated(place),
            forfeits=tournament.forfeits(place),
        )
        for place in np.argsort(-ratings.elo, kind="stable").tolist()
    ]


def to_json(tournament: Tournament, table: list[Standing]) -> dict[str, Any]:
    """Returns what `azjax arena --json` prints."""
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
                **_record_json(line.record),
                "repeated": line.repeated,
                "forfeits": line.forfeits,
            }
            for line in table
        ],
        "matches": [
            {
                "player": tournament.names[player],
                "opponent": tournament.names[opponent],
                **_record_json(match.total),
                "interval": list(match.interval),
                "as_first": list(match.as_first),
                "as_second": list(match.as_second),
                "repeated": match.repeated,
                "forfeits": list(match.forfeits),
            }
            for (player, opponent), match in tournament.matches.items()
        ],
    }


def _record_json(record: Record) -> dict[str, Any]:
    return {**record._asdict(), "games": record.games, "score": record.score}
