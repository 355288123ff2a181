"""Evaluation of a trained player: solved positions, random and untrained opponents."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from azjax.arena.matches import GAMES_AT_ONCE, check_num_games, play_openings
from azjax.arena.openings import suite
from azjax.arena.perfect_match import PerfectMatch, play_perfect_match
from azjax.arena.results import MatchResult
from azjax.arena.solved import GRADED_AT_ONCE, Grade, SolvedPositions, grade
from azjax.networks import Parts
from azjax.players import (
    NetworkPlayer,
    Player,
    RandomPlayer,
    TrainedPlayer,
    first_network,
)
from azjax.players.simple import perfect_player

OPENING_MOVES = 2
OPPONENTS = {"random": "random moves", "first": "an untrained network"}
# On a CPU larger batches take as long for a position, and report progress later. Pairs
# of games and positions share a program.
CPU_BATCH = 32


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
    on_progress: Callable[[str, int, int], object] = lambda part, done, total: None,
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
        on_progress: called with a description of the current part of the work, and how
            many of its games or positions are done.
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
    positions_at_once, games_at_once = GRADED_AT_ONCE, GAMES_AT_ONCE
    if jax.default_backend() == "cpu":
        positions_at_once, games_at_once = CPU_BATCH, 2 * CPU_BATCH

    def counter(total: int, part: str) -> Callable[[int], None]:
        """Returns a function that is called with what has just been done of a part."""
        done = 0

        def add(number: int) -> None:
            nonlocal done
            done += number
            on_progress(part, done, total)

        add(0)
        return add

    grades: dict[str, Grade] = {}
    if positions is not None:
        keys = jax.random.split(grade_key, len(players))
        for (name, player), key in zip(players.items(), keys, strict=True):
            add = counter(len(positions), f"positions, {name}")
            grades[name] = grade(
                player, positions, key, positions_at_once, on_positions=add
            )
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
            add = counter(num_games, f"games, {name} against {OPPONENTS[opponent]}")
            matches[name, opponent] = play_openings(
                *(game, players[name], opponents[opponent], openings, key),
                games_at_once=games_at_once,
                on_games=add,
            )
    perfect, opponent = {}, perfect_player(game)
    if opponent is not None and num_games:
        keys = jax.random.split(perfect_key, len(players))
        for (name, player), key in zip(players.items(), keys, strict=True):
            add = counter(num_games // 2, f"games, {name} against perfect play")
            perfect[name] = play_perfect_match(
                game, player, opponent, num_games // 2, key, on_games=add
            )
    return Report(
        simulations, grades.get("network"), grades.get("search"), matches, perfect
    )


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
