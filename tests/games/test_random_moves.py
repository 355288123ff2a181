import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import make, random_action, random_moves
from azjax.games.core import initial_states
from azjax.games.random_moves import play_random_move, play_random_moves

random_actions = jax.jit(random_action)


def draw(mask, num_draws):
    """Returns `[num_draws]` random actions."""
    masks = np.broadcast_to(mask, (num_draws, len(mask)))
    return np.asarray(random_actions(jax.random.key(0), masks))


@pytest.mark.parametrize("num_actions", [1, 7, 16, 17, 82, 362])
def test_every_legal_action_is_equally_likely_and_no_other_is_drawn(num_actions):
    mask = np.arange(num_actions) % 3 != 1
    counts = np.bincount(draw(mask, 40_000), minlength=num_actions)
    expected = 40_000 / mask.sum()
    assert counts.size == num_actions
    assert (counts[~mask] == 0).all()
    assert (np.abs(counts[mask] - expected) <= 5.5 * np.sqrt(expected)).all()


def test_few_legal_actions_among_very_many_are_found():
    legal = [0, 15, 16, 1000, 4670, 4671]
    mask = np.isin(np.arange(4672), legal)
    counts = np.bincount(draw(mask, 6_000), minlength=4672)
    assert np.flatnonzero(counts).tolist() == legal
    assert counts[legal].min() > 800


@pytest.mark.parametrize("count", [1, 2, 7, 4671, 65_536])
def test_bits_are_scaled_as_in_exact_arithmetic(count):
    bits = np.array([0, 1, 65_535, 65_536, 2**31, 2**32 - 1], np.uint32)
    scaled = random_moves._scale(jnp.array(bits), jnp.uint32(count))
    assert scaled.tolist() == [int(b) * count // 2**32 for b in bits]


def test_one_position_or_many_in_any_shape_have_an_action_each():
    mask = np.arange(7) == 3
    assert random_actions(jax.random.key(0), mask).shape == ()
    actions = random_actions(jax.random.key(0), np.broadcast_to(mask, (2, 3, 7)))
    assert actions.shape == (2, 3)
    assert (np.asarray(actions) == 3).all()


def test_without_a_legal_action_0_is_drawn():
    assert draw(np.zeros(40, bool), 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(), (65_537,), (2, 0)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=re.escape(str(list(shape)))):
        random_action(jax.random.key(0), jnp.ones(shape, bool))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_mask_of_another_dtype_is_refused(dtype):
    with pytest.raises(ValueError, match=rf"bool.*\[7\] {dtype}"):
        random_action(jax.random.key(0), jnp.ones(7, dtype))


@functools.partial(jax.jit, static_argnums=(0, 1))
def play(game, batch_size, rng_key, num_moves):
    """Returns the positions after random moves, and their boards."""
    states = initial_states(game, batch_size)
    states = play_random_moves(game, rng_key, states, num_moves)
    return states, jax.vmap(game.board)(states)


def count_pieces(boards):
    return (np.asarray(boards) >= 0).sum(axis=(1, 2)).tolist()


def test_each_position_gets_its_number_of_moves():
    num_moves = jnp.arange(8)
    states, boards = play(make("gomoku:6"), 8, jax.random.key(0), num_moves)
    assert count_pieces(boards) == num_moves.tolist()
    assert states.current_player.tolist() == [0, 1] * 4


@pytest.mark.parametrize("name", ["tic_tac_toe", "gomoku:6,6,5"])
def test_moves_that_would_end_the_game_are_left_out(name):
    game = make(name)
    num_moves = jnp.full(64, game.max_moves)
    states, boards = play(game, 64, jax.random.key(0), num_moves)
    assert not states.terminated.any()
    assert len(set(count_pieces(boards))) > 1


def test_a_key_determines_the_moves():
    game, num_moves = make("gomoku:6"), jnp.full(16, 4)
    first, again, other = (
        play(game, 16, jax.random.key(seed), num_moves)[1] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_move_is_returned_and_minus_1_where_it_would_end_the_game():
    game = make("tic_tac_toe")
    first, full = game.init(), game.init()
    for action in [0, 1, 2, 4, 3, 5, 7, 6]:  # all cells but the last
        full = game.step(full, jnp.int32(action))
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, full)
    after, action = play_random_move(game, jax.random.key(0), states)
    assert action[1] == -1
    assert not after.terminated.any()
    np.testing.assert_array_equal(after.stones[0][0][0], 1 << action[0])
