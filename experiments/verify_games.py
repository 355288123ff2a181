"""Compares the rules with other engines and published counts, move by move.

    python experiments/verify_games.py
    python experiments/verify_games.py --names othello go_9x9 --games 1000

Random games are played by azjax and replayed by other engines. At every position the
legal actions, the player to move, whether the game is over, the rewards and the board
must agree. Deliberate differences between engines are documented in `engines/`. Exits
with an error if anything disagrees.
"""

import collections
import dataclasses
import functools
import sys
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import tyro
from engines import (
    breakthrough,
    chess_rules,
    go,
    gomoku,
    kalah,
    open_spiel,
    othello,
    perft,
    pgx_games,
    ur,
)
from engines import hex as hex_rules
from engines.record import make_recorder
from engines.replay import FACTS

from azjax import games


class Check(NamedTuple):
    """A comparison of random games with another engine.

    game: game spec.
    engine: the engine's name.
    compare: `(game, record) -> counts` for recorded games; with `on_device`, `game ->
        (keys -> counts)`.
    on_device: whether the engine runs on the device.
    games: default number of games.
    batch_size: parallel games.
    """

    game: str
    engine: str
    compare: Callable
    on_device: bool = False
    games: int = 20_000
    batch_size: int = 1000


def small(game: str, engine: str, compare: Callable, on_device: bool = False) -> Check:
    """Returns a check of a short game, with more games."""
    return Check(game, engine, compare, on_device, games=100_000, batch_size=5000)


CHECKS = {
    "tic_tac_toe": (
        small("tic_tac_toe", "OpenSpiel", open_spiel.compare),
        small("tic_tac_toe", "pgx", pgx_games.make_comparison, True),
    ),
    "connect_four": (
        small("connect_four", "OpenSpiel", open_spiel.compare),
        small("connect_four", "pgx", pgx_games.make_comparison, True),
    ),
    "othello": (
        Check("othello", "OpenSpiel", othello.compare),
        Check("othello", "pgx", othello.make_pgx_comparison, True),
    ),
    "hex": (
        Check("hex", "OpenSpiel", hex_rules.compare),
        Check("hex:swap=true", "OpenSpiel", hex_rules.compare),
        Check("hex:swap=true", "pgx", pgx_games.make_comparison, True),
        Check("hex:5,swap=true", "OpenSpiel", hex_rules.compare),
        Check("hex:19", "OpenSpiel", hex_rules.compare, games=500, batch_size=250),
    ),
    "gomoku": (
        Check("gomoku", "OpenSpiel", gomoku.compare),
        small("gomoku:3,3,3", "OpenSpiel", gomoku.compare),
        Check("gomoku:6,4,3", "OpenSpiel", gomoku.compare),
        Check("gomoku:exact=true", "a plain engine", gomoku.compare, games=2000),
        Check("gomoku:7,7,4,exact=true", "a plain engine", gomoku.compare),
    ),
    "breakthrough": (
        Check("breakthrough", "OpenSpiel", breakthrough.compare),
        Check("breakthrough:6,5", "OpenSpiel", breakthrough.compare),
    ),
    "kalah": (
        Check("kalah:empty_capture=false", "OpenSpiel", kalah.compare_with_open_spiel),
        Check("kalah", "a plain engine", kalah.compare),
        Check("kalah:3,3", "a plain engine", kalah.compare),
        Check("kalah:7,6,empty_capture=false", "a plain engine", kalah.compare),
        Check("kalah:4,5,remaining=opponent", "a plain engine", kalah.compare),
        Check("kalah:2,6,false,nobody,10", "a plain engine", kalah.compare),
    ),
    "ur": (
        Check("ur", "a plain engine", ur.compare),
        Check("ur:2", "a plain engine", ur.compare),
        Check("ur:1", "a plain engine", ur.compare),
        Check("ur:3,20", "a plain engine", ur.compare),
    ),
    "go_9x9": (
        Check("go", "OpenSpiel", go.compare, batch_size=500),
        Check(
            "go:9,superko=true",
            "a plain engine",
            functools.partial(go.compare_with_plain_engine, legal_every=20),
            games=300,
            batch_size=100,
        ),
        Check("go:3", "a plain engine", go.compare_with_plain_engine, games=1000),
        Check(
            "go:3,0,true,60",
            "a plain engine",
            go.compare_with_plain_engine,
            games=1000,
        ),
    ),
    "go_19x19": (Check("go:19", "OpenSpiel", go.compare, games=5000, batch_size=50),),
}
NAMES = (*CHECKS, "chess")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    games: random games per check, instead of the defaults.
    names: the games to check.
    seed: seed of the random games.
    """

    games: int | None = None
    names: tuple[Literal[NAMES], ...] = NAMES  # pyright: ignore[reportInvalidTypeForm]
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.games is not None and self.games < 1:
            raise ValueError(f"games must be >= 1: {self.games}")


def run_check(check: Check, settings: Settings) -> bool:
    """Runs and reports a check; returns whether everything agrees."""
    game, begin = games.make(check.game), time.perf_counter()
    num_games = settings.games or check.games
    batch_size = min(check.batch_size, num_games)
    if check.on_device:
        count = check.compare(game)
    else:
        record = make_recorder(game)

        def count(keys):
            return check.compare(game, jax.device_get(record(keys)))

    keys = jax.random.split(jax.random.key(settings.seed), num_games)
    counts = collections.Counter()
    for start in range(0, num_games, batch_size):
        batch = jax.device_get(count(keys[start : start + batch_size]))
        counts.update({fact: int(number) for fact, number in batch.items()})
    wrong = {fact: counts.pop(fact) for fact in FACTS}
    print(
        f"{check.game} and {check.engine}: {num_games:,} games, "
        + ", ".join(f"{number:,} {what}" for what, number in counts.items())
        + f", {time.perf_counter() - begin:.0f} s; disagreements {wrong}",
        flush=True,
    )
    return not any(wrong.values())


def count_positions(name: str) -> bool:
    """Counts positions and lines; returns whether they equal the published numbers."""
    num_moves = len(perft.NUM_LINES[name]) - 1
    plies = perft.enumerate_plies(games.make(name), num_moves)
    lines = [ply.num_lines() for ply in plies]
    print(f"{name}, ways to play: {lines}, published {perft.NUM_LINES[name]}")
    agree = lines == perft.NUM_LINES[name]
    if name in perft.NUM_POSITIONS:
        positions = [ply.num_positions() for ply in plies]
        published = perft.NUM_POSITIONS[name]
        print(f"{name}, positions: {positions}, published {published}", flush=True)
        agree &= positions == published
    return agree


def check_chess(settings: Settings) -> bool:
    """Compares chess with python-chess, and its counts with the published ones."""
    checks = (
        chess_rules.Settings(games=settings.games or 5000, seed=settings.seed),
        chess_rules.Settings(
            games=settings.games or 1000,
            repetition=True,
            back=0.2,
            endgames=True,
            seed=settings.seed,
        ),
    )
    agree = [
        chess_rules.main(
            dataclasses.replace(check, batch_size=min(check.games, check.batch_size))
        )
        == 0
        for check in checks
    ]
    return all([*agree, chess_rules.count_moves()])


def main(settings: Settings) -> int:
    """Checks the games and returns the exit status."""
    agree = []
    for name in settings.names:
        if name == "chess":
            agree.append(check_chess(settings))
        else:
            agree += [run_check(check, settings) for check in CHECKS[name]]
        if name in perft.NUM_LINES:
            agree.append(count_positions(name))
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Settings, description=__doc__)))
