"""Compares searches whose nodes have an edge for each legal action, as in games that
declare `max_legal_actions`, with searches that have one for each action.

Both search the same positions with the same network, a small convolutional one, in
turns; the medians are reported. They should choose the same moves.

    python experiments/bench/edges.py chess
"""

import dataclasses
import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from harness import make_table, show, time_in_turns

from azjax import games
from azjax.devices import jit_network
from azjax.games import Game, State
from azjax.games.core import initial_states
from azjax.games.random_moves import play_random_moves
from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer, first_network
from azjax.players.model import num_edges, to_search
from azjax.search import GumbelConfig, search_bytes


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    game: one of the games that declare `max_legal_actions`.
    games: positions that are searched at once.
    simulations: of each search.
    random_moves: that lead to the positions.
    blocks: of the network.
    channels: of the network.
    repeats: searches of each kind; the median time is reported.
    json: print JSON instead of the table.
    """

    game: tyro.conf.Positional[str]
    games: int = 256
    simulations: int = 32
    random_moves: int = 20
    blocks: int = 4
    channels: int = 32
    repeats: int = 5
    json: bool = False


def measure(settings: Settings) -> list[dict]:
    """Returns the measurements of both kinds of search."""
    game = games.make(settings.game)
    if not game.max_legal_actions:
        raise SystemExit(f"{game!r} declares no max_legal_actions")
    subclass = type("AllActions", (type(game),), {"max_legal_actions": 0})
    versions = {"legal actions": game, "all actions": subclass(**game.options)}
    states = play_random_moves(
        game,
        jax.random.key(0),
        initial_states(game, settings.games),
        jnp.full(settings.games, settings.random_moves),
    )
    searches = {
        name: make_search(version, states, settings)
        for name, version in versions.items()
    }
    moves = {name: np.asarray(search()) for name, search in searches.items()}
    times = time_in_turns(
        {
            name: lambda search=search: jax.block_until_ready(search())
            for name, search in searches.items()
        },
        settings.repeats,
    )
    return [
        {
            "edges_for": name,
            "edges": num_edges(version),
            "device": jax.devices()[0].device_kind,
            "seconds": statistics.median(times[name]),
            "tree_bytes": search_bytes(
                GumbelConfig(),
                to_search(version, states),
                num_edges(version),
                settings.simulations,
            )
            // settings.games,
            "same_moves": float((moves[name] == moves["all actions"]).mean()),
        }
        for name, version in versions.items()
    ]


def make_search(game: Game, states: State, settings: Settings) -> Callable:
    """Returns a function without arguments that searches and returns `[B]` moves."""
    trunk = ConvTrunkConfig(num_blocks=settings.blocks, channels=settings.channels)
    network, variables = first_network(
        0, game, NetworkConfig(trunk=trunk, heads="board")
    )
    player = AlphaZeroPlayer(
        game, GumbelConfig(), settings.simulations, network, variables
    )
    choose = jit_network(
        lambda player, states: player.choose(jax.random.key(0), states).action
    )
    return lambda: choose(player, states)


def main(settings: Settings) -> None:
    """Measures and prints."""
    results = measure(settings)
    columns = {
        "an edge for each of": "{edges_for}",
        "edges": "{edges:,}",
        "seconds": "{seconds:.3f}",
        "bytes of a tree": "{tree_bytes:,}",
        "same moves": "{same_moves:.1%}",
    }
    title = (
        f"{settings.games} positions of {settings.game}, {settings.simulations} "
        f"simulations, on {results[0]['device']}"
    )
    show(results, make_table(results, columns, title), as_json=settings.json)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
