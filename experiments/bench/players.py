"""Measures the time that players take for a move, in batches of different sizes.

All players choose moves in the same positions, which a few random moves lead to. The
first choice compiles and is excluded; the median and the maximum of the others are
reported. State that a player carries between moves of a game is not used.

    python experiments/bench/players.py connect_four mcts:1000 --games 1 20
"""

import dataclasses
import statistics

import jax
import tyro
from harness import make_table, show, time_in_turns

from azjax import games, players
from azjax.arena import suite
from azjax.games import Game

NUM_RANDOM_MOVES = 4


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    game: one of the games that `azjax games` lists.
    players: player specs as for `azjax arena`; only compiled players.
    games: batch sizes.
    repeats: number of timed moves.
    seed: seed of positions and players.
    json: print JSON instead of the table.
    """

    game: tyro.conf.Positional[str]
    players: tyro.conf.Positional[tuple[str, ...]]
    games: tuple[int, ...] = (1, 20)
    repeats: int = 20
    seed: int = 0
    json: bool = False


def measure(game: Game, spec: str, number: int, settings: Settings) -> dict:
    """Returns the time that a player takes for a move in each of `number` games."""
    player = players.load_compiled(spec, game)
    rng_key = jax.random.key(settings.seed)
    states = suite(game, rng_key, number, NUM_RANDOM_MOVES).states
    keys = iter(jax.random.split(rng_key, settings.repeats + 1))

    def move():
        jax.block_until_ready(players.choose(player, next(keys), states))

    seconds = time_in_turns({spec: move}, settings.repeats)[spec]
    return {
        "game": game.name,
        "player": spec,
        "device": jax.devices()[0].device_kind,
        "games": number,
        "seconds": statistics.median(seconds),
        "slowest_seconds": max(seconds),
    }


def main(settings: Settings) -> None:
    """Measures and prints."""
    game = games.make(settings.game)
    rows = [
        measure(game, spec, number, settings)
        for spec in settings.players
        for number in settings.games
    ]
    columns = {
        "player": "{player}",
        "games at once": "{games}",
        "median": "{seconds:.4f}",
        "slowest": "{slowest_seconds:.4f}",
    }
    table = make_table(rows, columns, f"{game!r}: seconds for a move")
    show(rows, table, as_json=settings.json)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
