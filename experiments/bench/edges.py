"""Compares searches whose nodes have an edge for each legal action, as in games that
declare `max_legal_actions`, with searches that have one for each action.

Both search the same positions with the same network, in turns, and must choose the same
moves. The network is a small convolutional one with board heads.

    python experiments/bench/edges.py chess
"""

import dataclasses
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import rich
import rich.table
import tyro
from timing import time_in_turns

from azjax import games
from azjax.devices import network_compiler_options
from azjax.games import Game
from azjax.games.core import initial_states
from azjax.games.random_moves import play_random_moves
from azjax.networks import ConvTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer, first_network
from azjax.players.edges import to_search
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
    """

    game: tyro.conf.Positional[str]
    games: int = 256
    simulations: int = 32
    random_moves: int = 20
    blocks: int = 4
    channels: int = 32
    repeats: int = 5


def with_all_actions(game: Game) -> Game:
    """Returns the game without its `max_legal_actions`."""
    subclass = type(
        type(game).__name__, (type(game),), {"max_legal_actions": game.num_actions}
    )
    return subclass(**game.options)


def main(settings: Settings) -> None:
    """Measures and prints."""
    game = games.make(settings.game)
    by_name = {"legal actions": game, "all actions": with_all_actions(game)}
    network, variables = first_network(
        0,
        game,
        NetworkConfig(
            trunk=ConvTrunkConfig(
                num_blocks=settings.blocks, channels=settings.channels
            ),
            heads="board",
        ),
    )
    rng_key = jax.random.key(0)
    states = play_random_moves(
        game,
        rng_key,
        initial_states(game, settings.games),
        jnp.full(settings.games, settings.random_moves),
    )
    runs, chosen = {}, {}
    for name, version in by_name.items():
        player = AlphaZeroPlayer(
            version, GumbelConfig(), settings.simulations, network, variables
        )
        choose = jax.jit(
            lambda key, states, player=player: player.choose(key, states),
            compiler_options=network_compiler_options(jax.default_backend()),
        )
        chosen[name] = np.asarray(choose(rng_key, states).action)
        runs[name] = lambda choose=choose: jax.block_until_ready(
            choose(rng_key, states)
        )
    same = (chosen["legal actions"] == chosen["all actions"]).mean()
    seconds = time_in_turns(runs, settings.repeats)
    table = rich.table.Table(
        "an edge for each of", "edges", "seconds", "bytes of a game's tree"
    )
    for name, version in by_name.items():
        found = to_search(version, states, jax.vmap(version.legal_action_mask)(states))
        size = search_bytes(
            GumbelConfig(), found, version.max_legal_actions, settings.simulations
        )
        table.add_row(
            name,
            f"{version.max_legal_actions:,}",
            f"{statistics.median(seconds[name]):.3f}",
            f"{size // settings.games:,}",
        )
    rich.print(table)
    rich.print(f"the same moves in {same:.1%} of {settings.games} positions")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
