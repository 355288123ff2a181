"""Evaluation of a trained player: solved positions, random and untrained opponents."""

import itertools
from typing import Any, NamedTuple

import jax

from azjax.arena.matches import check_num_games, play_openings
from azjax.arena.openings import suite
from azjax.arena.perfect_match import PerfectMatch, play_perfect_match
from azjax.arena.results import MatchResult
from azjax.arena.solved import Grade, SolvedPositions, grade
from azjax.networks import Parts
from azjax.players import (
    NetworkPlayer,
    Player,
    RandomPlayer,
    TrainedPlayer,
    first_network,
)
from azjax.players.perfect import perfect_player

OPENING_MOVES = 2


class Report(NamedTuple):
    """The result of `evaluate`.

    simulations: of the search.
    network: mistakes of the network alone; None without solved positions.
    search: mistakes of the search with the network; None without solved positions.
    matches: results by player (`network` or `search`) and opponent (`random` or
        `first`, the untrained network).
    perfect: games from the initial position against the perfect player, by player;
        empty without matches or without a perfect player of the game.
    """

    simulations: int
    network: Grade | None
    search: Grade | None
    matches: dict[tuple[str, str], MatchResult]
    perfect: dict[str, PerfectMatch]

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON object of `azjax evaluate --json`."""
        grades = {"network": self.network, "search": self.search}
        perfect = {player: match.to_json() for player, match in self.perfect.items()}
        return {
            **{name: _grade_json(grade) for name, grade in grades.items() if grade},
            "simulations": self.simulations,
            "matches": [
                {
                    "player": player,
                    "opponent": opponent,
                    **result.total._asdict(),
                    "score": result.total.score,
                    "interval": list(result.interval),
                }
                for (player, opponent), result in self.matches.items()
            ],
            **({"against_perfect": perfect} if perfect else {}),
        }


def evaluate(
    trained: TrainedPlayer,
    positions: SolvedPositions | None,
    rng_key: jax.Array,
    *,
    simulations: int,
    num_games: int,
    parts: Parts | None = None,
) -> Report:
    """Grades a trained player and plays matches; the key is consumed.

    Args:
        trained: the player.
        positions: solved positions of its game, or None.
        rng_key: for openings and players.
        simulations: network evaluations per move of the search.
        num_games: games per match, from openings of two random moves; an even number,
            or 0 for no matches; half as many against the perfect player.
        parts: the user's own modules, if the network has any.
    """
    game, network = trained.game, trained.network
    opening_key, grade_key, match_key, perfect_key = jax.random.split(rng_key, 4)
    openings = None
    if num_games:
        check_num_games(num_games)
        openings = suite(game, opening_key, num_games // 2, OPENING_MOVES)
    players: dict[str, Player] = {
        "network": NetworkPlayer(game, network, trained.variables),
        "search": trained.player(simulations),
    }
    grades = {
        name: None if positions is None else grade(player, positions, key)
        for (name, player), key in zip(
            players.items(), jax.random.split(grade_key, len(players)), strict=True
        )
    }
    opponents: dict[str, Player] = {"random": RandomPlayer(game)}
    # Building the untrained network needs the user's own modules.
    if parts is not None or not trained.has_own_parts:
        own_parts = parts if trained.has_own_parts else None
        _, first = first_network(trained.seed, game, trained.config, own_parts)
        opponents["first"] = NetworkPlayer(game, network, first)
    matches = {}
    if openings is not None:
        met = list(itertools.product(opponents, players))
        keys = jax.random.split(match_key, len(met))
        for (opponent, name), key in zip(met, keys, strict=True):
            matches[name, opponent] = play_openings(
                game, players[name], opponents[opponent], openings, key
            )
    perfect, opponent = {}, perfect_player(game)
    if opponent is not None and num_games:
        keys = jax.random.split(perfect_key, len(players))
        perfect = {
            name: play_perfect_match(game, player, opponent, num_games // 2, key)
            for (name, player), key in zip(players.items(), keys, strict=True)
        }
    return Report(simulations, grades["network"], grades["search"], matches, perfect)


def _grade_json(graded: Grade) -> dict[str, Any]:
    return {
        "mean": graded.mean,
        "interval": list(graded.mean_interval),
        "groups": {
            name: {
                "mistake_rate": group.rate,
                "interval": list(group.interval),
                "positions": group.positions,
            }
            for name, group in graded.groups.items()
        },
    }
