import functools

import jax
import numpy as np
import pytest
from compiled_games import play
from players.engines import position

from azjax import games
from azjax.arena.openings import suite
from azjax.games.host import legal_actions, next_state, rewards
from azjax.players import GreedyPlayer

CONNECT_FOUR = games.make("connect_four")
NUM_GAMES = 12


@functools.cache
def compiled(game):
    return jax.jit(GreedyPlayer(game).choose)


def choose(game, states):
    """Returns the choices; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        return jax.device_get(compiled(game)(jax.random.key(0), states))


def wins_of(game, state):
    """Returns the moves that win immediately."""
    mover = int(state.current_player)
    ends = {a: next_state(game, state, a) for a in legal_actions(game, state)}
    return {a for a, end in ends.items() if rewards(game, end)[mover] > 0}


def best_moves(game, state):
    """Returns the moves that a greedy player may choose."""
    wins = wins_of(game, state)
    if wins:
        return wins
    mover, dangers = int(state.current_player), {}
    for action in legal_actions(game, state):
        after = next_state(game, state, action)
        dangers[action] = len(wins_of(game, after))
        if after.terminated:
            dangers[action] = 0 if rewards(game, after)[mover] == 0 else 10**6
    return {a for a, danger in dangers.items() if danger == min(dangers.values())}


@pytest.mark.parametrize(
    ("name", "num_moves"),
    [
        ("connect_four", 12),
        pytest.param("gomoku:4,4,3", 4, marks=pytest.mark.slow),
        pytest.param("breakthrough:5,4", 13, marks=pytest.mark.slow),
    ],
)
def test_it_wins_or_minimizes_winning_replies_and_uses_no_key_twice(name, num_moves):
    game = games.make(name)
    states = suite(game, jax.random.key(0), NUM_GAMES, num_moves).states
    choice, kinds = choose(game, states), set()
    for index in range(NUM_GAMES):
        state = jax.tree.map(lambda leaf, index=index: leaf[index], states)
        best = best_moves(game, state)
        assert set(np.flatnonzero(choice.policy[index]).tolist()) == best
        assert int(choice.action[index]) in best
        kinds.add(float(choice.value[index]))
    assert len(kinds) > 1  # otherwise the positions test too little


@pytest.mark.parametrize(
    ("moves", "value"),
    [
        ((), 0),
        ((0, 6, 0, 6, 0, 6), 1),  # three discs in column 0
        ((0, 6, 0, 6, 0), 0),  # the opponent can block them
        ((2, 0, 3, 0, 4), -1),  # no block is enough
    ],
)
def test_its_value_is_1_for_a_win_and_minus_1_for_a_lost_position(moves, value):
    state = position(CONNECT_FOUR, moves)
    states = jax.tree.map(lambda leaf: np.stack([leaf] * NUM_GAMES), state)
    choice = choose(CONNECT_FOUR, states)
    np.testing.assert_array_equal(choice.value, value)
    if value == -1:  # of two threats it blocks one
        np.testing.assert_allclose(choice.policy[0], [0, 0.5, 0, 0, 0, 0.5, 0])


@pytest.mark.slow
def test_it_plays_a_game_of_many_actions():
    game = games.make("chess")
    # Fool's mate: 1. f3 e5 2. g4 and Qh4 mates.
    state = play(game, "f2f3 e7e5 g2g4")
    choice = choose(game, jax.tree.map(lambda leaf: np.asarray(leaf)[None], state))
    mate = game.text_to_action(state, "d8h4")
    assert choice.action[0] == mate
    assert choice.value[0] == 1
