import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import arena, games

TIC_TAC_TOE = games.make("tic_tac_toe")
KEY = jax.random.key(0)


@pytest.mark.parametrize("name", ["connect_four", "go:3"])
def test_openings_are_distinct_and_reached_by_their_moves(name):
    game = games.make(name)
    step, legal_action_mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    openings = arena.suite(game, KEY, 30, 2)
    assert openings.moves.shape == (30, 2)
    assert len(openings) == 30
    seen = set()
    for number, row in enumerate(openings.moves):
        state = game.init()
        for action in row:
            assert legal_action_mask(state)[action]
            state = step(state, jnp.int32(action))
        assert not state.terminated
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
        found = openings.take(np.array([number])).states
        for leaf, other in zip(leaves, jax.tree.leaves(found), strict=True):
            np.testing.assert_array_equal(leaf, other[0])
        seen.add(b"".join(leaf.tobytes() for leaf in leaves))
    assert len(seen) == 30


def test_the_same_key_gives_the_same_openings():
    first, again = (arena.suite(TIC_TAC_TOE, KEY, 20, 3) for _ in range(2))
    other = arena.suite(TIC_TAC_TOE, jax.random.key(1), 20, 3)
    np.testing.assert_array_equal(first.moves, again.moves)
    assert (first.moves != other.moves).any()


def test_all_openings_of_a_length_are_found():
    # Nine cells for X, then eight for O.
    assert arena.suite(TIC_TAC_TOE, KEY, 72, 2).moves.shape == (72, 2)


def test_openings_are_longer_if_there_are_too_few():
    # After three moves: 9 * 8 / 2 pairs of X times 7 cells of O.
    assert arena.suite(TIC_TAC_TOE, KEY, 73, 2).moves.shape == (73, 3)
    assert arena.suite(TIC_TAC_TOE, KEY, 253, 2).moves.shape == (253, 4)


@pytest.mark.parametrize(("name", "length"), [("tic_tac_toe", 1), ("connect_four", 4)])
def test_short_games_have_short_openings(name, length):
    assert arena.suite(games.make(name), KEY, 9, None).moves.shape == (9, length)


def test_openings_of_0_moves_are_the_initial_position():
    openings = arena.suite(TIC_TAC_TOE, KEY, 5, 0)
    assert openings.moves.shape == (5, 0)
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
