"""Measures how long each shipped player takes for a move where people play it.

    python experiments/reply_times.py
    python experiments/reply_times.py --games connect_four hex:7 --positions 20

The player moves at its default strength after a few random moves: in a session, as in
the terminal, the notebook and GTP; through `azjax serve`, with the time of the
messages; and on an exported page in Chromium, which exists for some games. What is
compiled or loaded before the first move is not counted. Needs playwright and a
Chromium.
"""

import dataclasses
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import rich
import rich.table
import tyro
from server_load.serving import NEWS, served, socket_of
from verify_browser import DECIDE, browser_page
from verify_browser import served as served_files
from websockets.sync.client import connect

from azjax import games, players
from azjax.arena import suite
from azjax.compilation_cache import enable_compilation_cache
from azjax.play.web_export import export_web
from azjax.players.serialization import shipped_players

NUM_RANDOM_MOVES = 4
PLAYER = "alphazero:pretrained"


@dataclasses.dataclass(frozen=True)
class Options:
    """Options.

    games: game specs; by default all with a shipped player.
    positions: number of timed moves.
    seed: of the positions.
    chromium: the browser's program; by default Playwright's own.
    json: print JSON instead of the table.
    """

    games: tuple[str, ...] = ()
    positions: int = 12
    seed: int = 0
    chromium: str | None = shutil.which("chromium")
    json: bool = False


def main(options: Options) -> None:
    """Measures and prints."""
    enable_compilation_cache()
    shipped = sorted(
        path.parent.name for path in shipped_players().glob("*/player.safetensors")
    )
    specs = options.games or [name.replace("-", ":", 1) for name in shipped]
    rows = [row for spec in specs for row in measure(games.make(spec), options)]
    if options.json:
        print(json.dumps(rows))
        return
    table = rich.table.Table("game", "where", title="milliseconds for a move")
    for name in ("simulations", "median", "slowest"):
        table.add_column(name, justify="right")
    for row in rows:
        times = (f"{row[name]:.0f}" for name in ("median_ms", "slowest_ms"))
        table.add_row(row["game"], row["where"], str(row["simulations"]), *times)
    rich.print(table)


def measure(game: games.Game, options: Options) -> Iterator[dict[str, Any]]:
    """Yields the times of a game's player in each place."""
    rng_key = jax.random.key(options.seed)
    openings = suite(game, rng_key, options.positions + 1, NUM_RANDOM_MOVES)
    positions = openings.moves.tolist()
    player = players.load(PLAYER, game)
    assert isinstance(player, players.AlphaZeroPlayer)
    session = players.start_session(player, game, options.seed)
    states = {
        tuple(actions): jax.tree.map(lambda leaf, row=row: leaf[row], openings.states)
        for row, actions in enumerate(positions)
    }

    def row(where: str, simulations: int, seconds: list[float]) -> dict[str, Any]:
        return {
            "game": repr(game),
            "where": where,
            "simulations": simulations,
            "median_ms": 1000 * statistics.median(seconds[1:]),
            "slowest_ms": 1000 * max(seconds[1:]),
        }

    seconds = seconds_of(
        lambda actions: session.choose(states[tuple(actions)], actions), positions
    )
    yield row("session", player.simulations, seconds)
    with served(repr(game), "--no-warm-up") as url, connect(socket_of(url)) as socket:

        def ask(method: str, **params: object) -> object:
            socket.send(json.dumps({"id": 0, "method": method, "params": params}))
            while (answer := json.loads(socket.recv()))["kind"] in NEWS:
                pass
            assert answer["kind"] == "answer", answer
            return answer["value"]

        ask("start", game=repr(game), player=PLAYER)
        seconds = seconds_of(lambda moves: ask("decide", actions=moves), positions)
    yield row("served page", player.simulations, seconds)
    with tempfile.TemporaryDirectory() as directory:
        try:
            export_web(players.load_run("pretrained", game), Path(directory), name="")
        except ValueError:  # the page has no rules for the game
            return
        with (
            served_files(Path(directory)) as url,
            browser_page(options.chromium) as page,
        ):
            page.goto(f"{url}/config.json")
            decisions = page.evaluate(DECIDE, [positions, player.simulations])
    seconds = [decision["seconds"] for decision in decisions]
    yield row("exported page", player.simulations, seconds)


def seconds_of(
    choose: Callable[[list[int]], object], positions: list[list[int]]
) -> list[float]:
    """Returns the seconds of each choice."""
    seconds = []
    for actions in positions:
        start = time.perf_counter()
        choose(actions)
        seconds.append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
