"""Grades players, plays matches and searches on 4 CPU devices; prints JSON."""

import json
import re
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azjax import arena, games
from azjax.arena import matches, solved
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer, RandomPlayer, first_network
from azjax.players.batches import Division, batch_layout
from azjax.players.core import choose
from azjax.search import AlphaZeroConfig

GAME = games.make("tic_tac_toe")
NETWORK = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1))
COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)"
    r"(?:-start)?\("
)
ONE, ALL = jax.local_devices()[:1], None
KEY = jax.random.key(0)


@struct.dataclass
class CountingPlayer:
    """Plays at random with a carry, the number of its moves, as the value."""

    draws_in_lanes: ClassVar[bool] = True

    def choose(self, rng_key, states):
        return RandomPlayer(GAME).choose(rng_key, states)

    def init_carry(self, states):
        return jnp.zeros(states.terminated.shape)

    def choose_with_carry(self, rng_key, states, carry):
        # The carry of each game is the number of its own moves so far.
        seen = jax.vmap(GAME.observe)(states).sum(axis=(1, 2, 3)) // 2
        is_own = states.terminated | (jnp.abs(seen - carry) <= 1)
        choice = self.choose(rng_key, states)
        action = jnp.where(is_own, choice.action, GAME.num_actions)
        return choice._replace(action=action), carry + 1


def choices_noted(used):
    """Makes the choices of the players append their number of devices to a list."""

    def noting(function):
        def call(*args):
            result = function(*args)
            choice = result if hasattr(result, "action") else result[0]
            used.append(len(choice.action.devices()))
            return result

        return call

    solved.choose = noting(solved.choose)
    matches.choose_with_carry = noting(matches.choose_with_carry)


def other_grades() -> float:
    """Returns the fraction of positions with different grades on 1 and 4 devices."""
    positions = arena.shipped(GAME).subset(100)
    one, four = (
        arena.grade(
            *(RandomPlayer(GAME), positions, KEY),
            batch_size=70,
            division=Division(devices=devices),
        )
        for devices in (ONE, ALL)
    )
    return float(np.mean(one.is_mistake != four.is_mistake))


def other_games() -> float:
    """Returns the fraction of games that differ on 1 and 4 devices, or were lost by the
    player with a carry because of an illegal move."""
    openings = arena.suite(GAME, KEY, 66)
    one, four = (
        arena.play_openings(
            *(GAME, CountingPlayer(), RandomPlayer(GAME), openings, KEY),
            division=Division(devices=devices),
        )
        for devices in (ONE, ALL)
    )
    assert len(one.moves) == 132
    is_other = (one.moves != four.moves).any(axis=1)
    return float(is_other.mean()) + sum(map(bool, four.faults))


def other_searches(player) -> tuple[float, list[str]]:
    """Returns the fraction of moves that differ on 1 and 4 devices, and the collectives
    of the search on 4."""
    states = arena.suite(GAME, KEY, 64).states
    actions, text = [], ""
    for devices in (ONE, ALL):
        layout = batch_layout(64, [player], Division(devices=devices))
        keys, positions = layout.keys(KEY), layout.by_position(states)
        arguments = (layout.replicated(player), keys, positions)
        search = jax.jit(choose, static_argnums=3).lower(*arguments, layout.mesh)
        compiled = search.compile()
        actions.append(np.asarray(compiled(*arguments).action))
        text = compiled.as_text()
    return float(np.mean(actions[0] != actions[1])), COLLECTIVES.findall(text)


def main() -> dict:
    """Returns the results."""
    network, variables = jax.jit(lambda: first_network(0, GAME, NETWORK))()
    searcher = AlphaZeroPlayer(GAME, AlphaZeroConfig(), 4, network, variables)
    used = []
    choices_noted(used)
    others = {"grade": other_grades(), "match": other_games()}
    others["search"], collectives = other_searches(searcher)
    layouts = []
    for size, number in ((72, 4), (66, 3), (63, 4)):
        division = Division(devices=jax.devices()[:number])
        layout = batch_layout(size, [searcher], division)
        mesh_size = layout.mesh and layout.mesh.size
        layouts.append([layout.size, layout.num_lanes, mesh_size])
    return {
        "others": others,
        "used": used,
        "collectives": collectives,
        "layouts": layouts,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
