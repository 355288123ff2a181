import functools
import re

import chex
import jax
import numpy as np
import pytest
from coin_toss import CoinToss
from compiled_games import play as game_play
from compiled_games import stack

from azjax.games import host, make, random_action
from azjax.games.core import initial_states
from azjax.games.random_moves import play_random_move, play_random_moves

random_actions = jax.jit(random_action)


def draw(mask, num_draws):
    """Returns `[num_draws]` random actions."""
    masks = np.broadcast_to(mask, (num_draws, len(mask)))
    return np.asarray(random_actions(jax.random.key(0), masks))


@pytest.mark.parametrize("num_actions", [7, 16, 17, 362])
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


@pytest.mark.parametrize("num_actions", [4671, 65_536])
def test_the_random_bits_are_scaled_as_in_exact_arithmetic(num_actions):
    bits = np.asarray(jax.random.bits(jax.random.key(0), 64, np.uint32)).tolist()
    expected = [number * num_actions // 2**32 for number in bits]
    assert draw(np.ones(num_actions, bool), 64).tolist() == expected


def test_one_position_or_many_in_any_shape_have_an_action_each():
    def shapes(*batch):
        mask = jax.ShapeDtypeStruct((*batch, 7), bool)
        return jax.eval_shape(random_action, jax.random.key(0), mask).shape

    assert shapes() == ()
    assert shapes(2, 3) == (2, 3)
    masks = np.arange(6)[:, None] == np.arange(7)
    actions = random_actions(jax.random.key(0), masks.reshape(2, 3, 7))
    np.testing.assert_array_equal(actions, np.arange(6).reshape(2, 3))
    # Without a legal action it is 0.
    assert draw(np.zeros(40, bool), 3).tolist() == [0, 0, 0]


def test_a_mask_of_another_shape_or_dtype_is_refused():
    for shape in (), (65_537,), (2, 0):
        with pytest.raises(ValueError, match=re.escape(str(list(shape)))):
            random_action(jax.random.key(0), np.ones(shape, bool))
    for dtype in "float32", "int8":
        with pytest.raises(ValueError, match=rf"bool.*\[7\] {dtype}"):
            random_action(jax.random.key(0), np.ones(7, dtype))


@functools.partial(jax.jit, static_argnums=0)
def play(game, rng_key, num_moves):
    """Returns the positions after random moves, and their boards."""
    states = initial_states(game, len(num_moves))
    states = play_random_moves(game, rng_key, states, num_moves)
    return states, jax.vmap(game.board)(states)


def count_pieces(boards):
    return (np.asarray(boards) >= 0).sum(axis=(1, 2)).tolist()


def test_each_position_gets_its_number_of_moves_determined_by_the_key():
    game, num_moves = make("gomoku:6"), np.arange(16) % 8
    states, boards = play(game, jax.random.key(0), num_moves)
    assert count_pieces(boards) == num_moves.tolist()
    np.testing.assert_array_equal(states.current_player, num_moves % 2)
    again, other = (play(game, jax.random.key(seed), num_moves)[1] for seed in (0, 1))
    np.testing.assert_array_equal(boards, again)
    assert (np.asarray(boards) != np.asarray(other)).any()


@pytest.mark.parametrize("name", ["tic_tac_toe", "gomoku:6,6,5"])
def test_moves_that_would_end_the_game_are_left_out(name):
    game = make(name)
    num_moves = np.full(64, game.max_moves)
    states, boards = jax.device_get(play(game, jax.random.key(0), num_moves))
    assert not states.terminated.any()
    assert len(set(count_pieces(boards))) > 1


def test_a_move_is_returned_and_minus_1_where_it_would_end_the_game():
    game = make("tic_tac_toe")
    full = game_play(game, "a3 b3 c3 b2 a2 c2 b1 a1")  # all cells but the last
    states = stack([game_play(game, ""), full])
    move = jax.jit(lambda key, states: play_random_move(game, key, states))
    after, action, outcome = jax.device_get(move(jax.random.key(0), states))
    assert action[1] == -1
    assert outcome is None
    assert not after.terminated.any()
    np.testing.assert_array_equal(after.stones[0][0][0], 1 << action[0])


def test_an_outcome_follows_each_move_and_both_are_left_out_where_the_game_would_end():
    game, num_moves = CoinToss(), np.arange(64) % 9
    states, boards = jax.device_get(play(game, jax.random.key(0), num_moves))
    assert not states.waits.any()
    assert not states.terminated.any()
    assert (np.array(count_pieces(boards)) <= num_moves).all()
    # A coin fell before the first moves too: some begin with the second player.
    assert set(states.current_player[num_moves == 0].tolist()) == {0, 1}
    move = jax.jit(lambda key, states: play_random_move(game, key, states))
    after, actions, outcomes = jax.device_get(move(jax.random.key(1), states))
    for index, (action, outcome) in enumerate(zip(actions, outcomes, strict=True)):
        state, expected = (
            jax.tree.map(lambda leaf, index=index: leaf[index], leaves)
            for leaves in (states, after)
        )
        if action >= 0:
            state = host.next_state(game, state, action)
            state = host.next_state(game, state, game.num_actions + outcome)
        else:
            assert outcome == -1
        chex.assert_trees_all_equal(state, expected)
    assert (actions < 0).any()
    assert set(outcomes[actions >= 0].tolist()) == {0, 1}
