import jax
import numpy as np
import pytest

from azjax import arena, games
from azjax.games.host import first_state, legal_actions, next_state

TIC_TAC_TOE = games.make("tic_tac_toe")
KEY = jax.random.key(0)


@pytest.mark.parametrize("name", ["connect_four", "go:3"])
def test_openings_are_distinct_and_reached_by_their_moves(name):
    game = games.make(name)
    openings = arena.suite(game, KEY, 30, 2)
    assert openings.moves.shape == (30, 2)
    assert len(openings) == 30
    seen = set()
    for number, row in enumerate(openings.moves):
        state = first_state(game)
        for action in row:
            assert action in legal_actions(game, state)
            state = next_state(game, state, action)
        assert not state.terminated
        leaves = jax.tree.leaves(state)
        found = jax.tree.leaves(openings.take(np.array([number])).states)
        for leaf, other in zip(leaves, found, strict=True):
            np.testing.assert_array_equal(leaf, other[0])
        seen.add(b"".join(leaf.tobytes() for leaf in leaves))
    assert len(seen) == 30


def test_the_key_determines_the_openings():
    keys = map(jax.random.key, (0, 0, 1))
    first, again, other = (arena.suite(TIC_TAC_TOE, key, 20, 3).moves for key in keys)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("name", "count", "length", "found"),
    [
        ("tic_tac_toe", 5, 0, 0),
        # Nine cells for X, then eight for O; then 9 * 8 / 2 pairs of X times 7 of O.
        ("tic_tac_toe", 72, 2, 2),
        ("tic_tac_toe", 73, 2, 3),
        ("tic_tac_toe", 253, 2, 4),
        # Short games have short openings.
        ("tic_tac_toe", 9, None, 1),
        ("connect_four", 9, None, 4),
    ],
)
def test_openings_are_as_long_as_their_number_requires(name, count, length, found):
    openings = arena.suite(games.make(name), KEY, count, length)
    assert openings.moves.shape == (count, found)
    assert not openings.states.terminated.any()


@pytest.mark.parametrize(
    ("count", "length", "message"),
    [
        (0, 2, "num_openings must be an int >= 1: 0"),
        (1, -1, "opening_moves must be an int >= 0: -1"),
        (1, 9, "9 random moves end tic_tac_toe"),
        (5000, 2, "tic_tac_toe has too few different openings of 2 or more moves"),
    ],
)
def test_too_many_openings_are_refused(count, length, message):
    with pytest.raises(ValueError, match=message):
        arena.suite(TIC_TAC_TOE, KEY, count, length)
