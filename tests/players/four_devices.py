"""Grades players and plays matches on 4 CPU devices; prints JSON."""

import json
import re

import jax
import numpy as np

from azjax import arena, games
from azjax.arena import matches, solved
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer, MCTSPlayer, RandomPlayer, first_network
from azjax.players.batches import Division, batch_layout
from azjax.players.core import choose
from azjax.search import GumbelConfig

GAME = games.make("tic_tac_toe")
COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)"
    r"(?:-start)?\("
)


def main() -> dict:
    """Returns the results."""
    trunk = DenseTrunkConfig(width=16, num_blocks=1)
    network, variables = first_network(0, GAME, NetworkConfig(trunk))
    search = GumbelConfig(tree_reuse_nodes=4)
    searcher = AlphaZeroPlayer(GAME, search, 4, network, variables)
    used = note_devices()
    others = {
        "grade of mcts": other_grades(MCTSPlayer(GAME, 4)),
        "grade of alphazero": other_grades(searcher),
        "match": other_games(searcher, RandomPlayer(GAME)),
    }
    layouts = [
        batch_layout(size, [searcher], Division(devices=jax.devices()[:number]))
        for size, number in ((72, 4), (66, 3), (63, 4))
    ]
    return {
        "others": others,
        "used": used,
        "collectives": collectives(searcher),
        "layouts": [
            [layout.size, layout.num_parts, layout.mesh and layout.mesh.size]
            for layout in layouts
        ],
    }


def note_devices() -> list[int]:
    """Returns a list, to which calls append the number of devices of their choice."""
    used = []

    def noting(function):
        def call(*args):
            result = function(*args)
            action = result.action if hasattr(result, "action") else result[0].action
            used.append(len(action.devices()))
            return result

        return call

    solved.choose, matches.choose_with_carry = (
        noting(solved.choose),
        noting(matches.choose_with_carry),
    )
    return used


def other_grades(player) -> float:
    """Returns the fraction of positions with different grades on 1 and 4 devices."""
    positions = arena.shipped(GAME)
    assert positions is not None
    one, four = (
        arena.grade(
            player,
            positions.subset(100),
            jax.random.key(1),
            batch_size=70,
            division=Division(devices=devices),
        )
        for devices in (jax.local_devices()[:1], None)
    )
    return float(np.mean(one.is_mistake != four.is_mistake))


def other_games(player, opponent) -> float:
    """Returns the fraction of games that differ on 1 and 4 devices."""
    openings = arena.suite(GAME, jax.random.key(0), 66)
    one, four = (
        arena.play_openings(
            *(GAME, player, opponent, openings, jax.random.key(1)),
            division=Division(devices=devices),
        ).moves
        for devices in (jax.local_devices()[:1], None)
    )
    assert len(one) == 132
    return float((one != four).any(axis=1).mean())


def collectives(player) -> list[str]:
    """Returns the collectives of a search."""
    layout = batch_layout(64, [player])
    states = arena.suite(GAME, jax.random.key(0), 64).states
    compiled = jax.jit(choose, static_argnums=3).lower(
        layout.replicated(player),
        layout.keys(jax.random.key(0)),
        layout.by_position(states),
        layout.mesh,
    )
    text = compiled.compile().as_text()
    assert text is not None
    return COLLECTIVES.findall(text)


if __name__ == "__main__":
    print(json.dumps(main()))
