import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest
from quick_compilation import FEW_OPTIMIZATIONS

from azjax import arena, games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import (
    GreedyPlayer,
    MCTSPlayer,
    MinimaxPlayer,
    NetworkPlayer,
    RandomPlayer,
    choose,
    first_network,
)
from azjax.players.batches import NUM_PARTS, BatchLayout, Division, batch_layout

GAME = games.make("tic_tac_toe")
NETWORK, VARIABLES = jax.jit(
    lambda: first_network(
        0, GAME, NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1))
    )
)()
PROGRAM = Path(__file__).with_name("four_devices.py")


@pytest.fixture(scope="module")
def found():
    flags = f"{FEW_OPTIMIZATIONS} --xla_force_host_platform_device_count=4"
    done = subprocess.run(
        [sys.executable, PROGRAM],
        env=os.environ | {"XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["grade", "match"])
def test_a_player_with_chance_chooses_the_same_moves_on_four_devices(found, what):
    assert found["others"][what] == 0


def test_a_searching_player_chooses_the_same_moves_on_four_devices(found):
    """The keys of its parts decide ties, except those that rounding decides."""
    assert found["others"]["search"] < 0.05


def test_all_devices_choose_moves(found):
    assert set(found["used"]) == {1, 4}
    assert found["used"].count(1) == found["used"].count(4)


def test_a_search_has_no_communication_between_devices(found):
    assert found["collectives"] == []


def test_every_used_device_has_the_same_number_of_parts(found):
    assert found["layouts"] == [[72, 8, 4], [72, 8, 2], [63, 1, None]]


@pytest.mark.parametrize(
    "player",
    [
        RandomPlayer(GAME),
        GreedyPlayer(GAME),
        MinimaxPlayer(GAME, 2),
        MCTSPlayer(GAME, 3),
        NetworkPlayer(GAME, NETWORK, VARIABLES, temperature=1.0),
    ],
    ids=lambda player: type(player).__name__,
)
def test_the_draws_of_a_part_depend_on_its_key_alone(player):
    states = arena.suite(GAME, jax.random.key(1), 16, 2).states
    keys = jax.random.split(jax.random.key(0), 4)
    # The parts 1 and 2 are at other places, among other parts.
    found = [
        np.asarray(choose(player, keys[parts], states_of(states, parts)).action)
        for parts in (np.array([0, 1, 2]), np.array([1, 2, 3]))
    ]
    np.testing.assert_array_equal(found[0][4:], found[1][:8])


def states_of(states, parts):
    rows = (4 * parts[:, None] + np.arange(4)).ravel()
    return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], states)


def test_one_key_draws_as_the_same_key_of_a_part():
    states = arena.suite(GAME, jax.random.key(1), 16, 2).states
    keys = jax.random.split(jax.random.key(0), 4)
    player = RandomPlayer(GAME)
    together = choose(player, keys, states).action
    alone = choose(player, keys[3], states_of(states, np.array([3]))).action
    np.testing.assert_array_equal(together[12:], alone)


def test_players_with_one_key_choose_on_one_device():
    class OneKey:
        pass

    assert batch_layout(100, [RandomPlayer(GAME), OneKey()]) == BatchLayout(100)


def test_one_device_uses_the_same_parts_as_several():
    assert batch_layout(512, [RandomPlayer(GAME)]) == BatchLayout(512, NUM_PARTS)


class Remote(NamedTuple):
    """A device of another process."""

    process_index: int


def divided(num_parts, num_processes, size=64):
    """The layout in the first of several processes with one device each."""
    remote = [Remote(index) for index in range(1, num_processes)]
    division = Division(num_parts, [*jax.local_devices()[:1], *remote])
    return batch_layout(size, [RandomPlayer(GAME)], division)


def test_every_process_computes_parts_of_a_divided_batch():
    assert divided(32, 16, size=70) == BatchLayout(96, 32, num_processes=16)


def test_processes_that_cannot_share_the_parts_equally_are_refused():
    with pytest.raises(ValueError, match="must be a multiple of the 3 processes: 8"):
        divided(8, 3)


def test_processes_compute_different_parts_of_a_batch_with_their_keys(monkeypatch):
    layout = divided(8, 4)
    key = jax.random.key(0)
    rows, keys = [], []
    for process in range(4):
        monkeypatch.setattr(jax, "process_index", lambda process=process: process)
        rows.append(layout.by_position(np.arange(64)))
        keys.append(jax.random.key_data(layout.keys(key)))
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(64))
    whole = jax.random.key_data(jax.random.split(key, 8))
    np.testing.assert_array_equal(np.concatenate(keys), whole)


def test_a_batch_of_one_part_has_one_key():
    layout = batch_layout(512, [RandomPlayer(GAME)], Division(num_parts=1))
    assert layout == BatchLayout(512)
