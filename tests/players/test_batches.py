from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest
from quick_compilation import found_on_devices
from untrained import untrained

from azjax import arena, games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import (
    GreedyPlayer,
    MCTSPlayer,
    MinimaxPlayer,
    NetworkPlayer,
    RandomPlayer,
    choose,
)
from azjax.players.batches import NUM_LANES, BatchLayout, Division, batch_layout

GAME = games.make("tic_tac_toe")
PROGRAM = Path(__file__).with_name("four_devices.py")


@pytest.fixture(scope="module")
def actions():
    """Returns the actions that a player chooses in some of four parts; if it is one,
    with one key.
    """
    positions = arena.suite(GAME, jax.random.key(1), 16, 2).states
    keys = jax.random.split(jax.random.key(0), 4)

    def actions(player, parts):
        rows = np.arange(16).reshape(4, 4)[parts].ravel()
        states = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], positions)
        return np.asarray(choose(player, keys[np.array(parts)], states).action)

    return actions


@pytest.fixture(scope="module")
def found():
    return found_on_devices(4, PROGRAM)


def test_four_devices_choose_the_moves_of_one_without_communication(found):
    assert found["others"]["grade"] == found["others"]["match"] == 0
    # The keys of the parts of a search decide ties, except those that rounding decides.
    assert found["others"]["search"] < 0.05
    assert found["collectives"] == []
    assert set(found["used"]) == {1, 4}
    assert found["used"].count(1) == found["used"].count(4)
    # Every used device has the same number of parts.
    assert found["layouts"] == [[72, 8, 4], [72, 8, 2], [63, 1, None]]


@pytest.mark.parametrize(
    "player",
    [
        RandomPlayer(GAME),
        GreedyPlayer(GAME),
        MinimaxPlayer(GAME, 2),
        MCTSPlayer(GAME, 3),
        NetworkPlayer,
    ],
    ids=str,
)
def test_the_draws_of_a_part_depend_on_its_key_alone(player, actions):
    if player is NetworkPlayer:
        config = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1))
        player = NetworkPlayer(GAME, *untrained(GAME, config), temperature=1.0)
    # The parts 1 and 2 are at other places, among other parts.
    first, second = (actions(player, parts) for parts in ([0, 1, 2], [1, 2, 3]))
    np.testing.assert_array_equal(first[4:], second[:8])


def test_one_key_draws_as_the_same_key_of_a_part(actions):
    player = RandomPlayer(GAME)
    together = actions(player, [0, 1, 2, 3])
    np.testing.assert_array_equal(together[12:], actions(player, 3))


class OneKey:
    """A player that draws with one key."""


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        # One device uses the same parts as several.
        ((512, [RandomPlayer(GAME)]), BatchLayout(512, NUM_LANES)),
        ((100, [RandomPlayer(GAME), OneKey()]), BatchLayout(100)),
        ((512, [RandomPlayer(GAME)], Division(num_lanes=1)), BatchLayout(512)),
    ],
)
def test_one_device_has_all_parts_or_one_key(layout, expected):
    assert batch_layout(*layout) == expected


class Remote(NamedTuple):
    """A device of another process."""

    process_index: int


def divided(num_lanes, num_processes, size=64):
    """The layout in the first of several processes with one device each."""
    remote = [Remote(index) for index in range(1, num_processes)]
    division = Division(num_lanes, [*jax.local_devices()[:1], *remote])
    return batch_layout(size, [RandomPlayer(GAME)], division)


def test_every_process_computes_the_same_number_of_parts_of_a_divided_batch():
    assert divided(32, 16, size=70) == BatchLayout(96, 32, num_processes=16)
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
