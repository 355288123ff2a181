"""Plays against `azjax serve` as many clients at once, with and without attacks.

    python experiments/verify_server.py
    python experiments/verify_server.py --visitors 10 --seconds 20 --idle-sockets 200

Starts the server on a free port. Visitors play whole games, mostly Connect Four against
the pretrained network, without pauses, and check every position, result and decision
against the rules. Then they repeat this while hostile clients send invalid JSON,
oversized messages and bodies, illegal moves and wrong addresses, and leave thousands of
idle sockets open. Exits with an error if an answer was wrong or a game was lost.
"""

import asyncio
import dataclasses
import json
import os
import sys
import time
from typing import Any

import tyro
from server_load.attacks import attacks
from server_load.serving import Tally, served
from server_load.visitors import Connection, load_pages, table_of

from azjax import games
from azjax.play.server.positions import Rules
from azjax.play.server.running import raise_file_limit

SPARE_FILES = 100


@dataclasses.dataclass(frozen=True)
class Options:
    """Options.

    visitors: parallel visitors.
    seconds: duration of each part; visitors finish the games that they have started.
    simulations: simulations per move.
    idle_sockets: number of sockets that hostile clients leave open.
    seed: seed of the visitors' moves.
    json: print one JSON object.
    """

    visitors: int = 50
    seconds: float = 120.0
    simulations: int = 200
    idle_sockets: int = 2000
    seed: int = 0
    json: bool = False


def main(options: Options) -> None:
    """Starts the server, plays, and prints the results."""
    raise_file_limit(options.visitors + options.idle_sockets + SPARE_FILES)
    with served() as url:
        results = asyncio.run(play_all(options, url))
    if options.json:
        print(json.dumps(results))
    else:
        for part, result in results.items():
            print(part)
            for name, value in result.items():
                print(f"  {name.replace('_', ' '):16} {value}")
    if any(result["errors"] or result["lost_games"] for result in results.values()):
        sys.exit("the server failed some visitors")


async def play_all(options: Options, url: str) -> dict[str, dict[str, Any]]:
    """Plays both parts and returns their results."""
    tables = [
        table_of(number, options.simulations) for number in range(options.visitors)
    ]
    rules = {
        name: Rules(games.make(name), 100_000) for name in {t.game for t in tables}
    }
    results = {}
    for part, seconds in (
        ("at first", 0.0),  # one game each, while the server compiles
        ("alone", options.seconds),
        ("among hostile ones", options.seconds),
    ):
        tally = Tally()
        end = time.monotonic() + seconds
        visitors = [
            Connection(url, table, rules[table.game], tally, options.seed + number)
            for number, table in enumerate(tables)
        ]
        attackers = (
            attacks(url, tally, options.idle_sockets) if "hostile" in part else []
        )
        tasks = [asyncio.create_task(attack) for attack in attackers]
        loading = load_pages(url, tally, end)
        await asyncio.gather(loading, *(visitor.play(end) for visitor in visitors))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        results[part] = tally.summary()
    return results


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the rules, without a network
    main(tyro.cli(Options, description=__doc__))
