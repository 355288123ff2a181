import jax
import numpy as np
import pytest

from azjax import games
from azjax.arena.openings import suite
from azjax.games.host import first_state, legal_actions, next_state, rewards
from azjax.players import GreedyPlayer


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
    mover = int(state.current_player)
    dangers = {}
    for action in legal_actions(game, state):
        after = next_state(game, state, action)
        if after.terminated:
            dangers[action] = 0 if rewards(game, after)[mover] == 0 else 10**6
        else:
            dangers[action] = len(wins_of(game, after))
    return {a for a, danger in dangers.items() if danger == min(dangers.values())}


@pytest.mark.parametrize(
    ("name", "num_moves"),
    [("connect_four", 12), ("gomoku:4,4,3", 4), ("breakthrough:5,4", 13)],
)
def test_it_wins_or_minimizes_winning_replies(name, num_moves):
    game = games.make(name)
    states = suite(game, jax.random.key(0), 12, num_moves).states
    choice = jax.device_get(
        jax.jit(GreedyPlayer(game).choose)(jax.random.key(1), states)
    )
    kinds = set()
    for index in range(12):
        state = jax.tree.map(lambda leaf, index=index: leaf[index], states)
        best = best_moves(game, state)
        assert set(np.flatnonzero(choice.policy[index]).tolist()) == best
        assert int(choice.action[index]) in best
        kinds.add(float(choice.value[index]))
    assert len(kinds) > 1  # otherwise the positions test too little


def after(game, *actions):
    state = first_state(game)
    for action in actions:
        state = next_state(game, state, action)
    return jax.tree.map(lambda leaf: leaf[None], state)


@jax.jit
def choose_in_connect_four(states):
    game = games.make("connect_four")
    return GreedyPlayer(game).choose(jax.random.key(0), states)


def test_its_value_is_1_for_a_win_and_minus_1_for_a_lost_position():
    game = games.make("connect_four")
    for moves, value in (
        ((), 0),
        ((0, 6, 0, 6, 0, 6), 1),  # three discs in column 0
        ((0, 6, 0, 6, 0), 0),  # the opponent can block them
        ((2, 0, 3, 0, 4), -1),  # no block is enough
    ):
        choice = choose_in_connect_four(after(game, *moves))
        assert np.asarray(choice.value)[0] == value


def test_of_two_threats_it_blocks_one():
    state = after(games.make("connect_four"), 2, 0, 3, 0, 4)
    policy = choose_in_connect_four(state).policy
    np.testing.assert_allclose(policy, [[0, 0.5, 0, 0, 0, 0.5, 0]])


@pytest.mark.slow
def test_it_plays_a_game_of_many_actions():
    game = games.make("chess")
    # Fool's mate: 1. f3 e5 2. g4 and Qh4 mates.
    state = first_state(game)
    for text in ("f2f3", "e7e5", "g2g4"):
        state = next_state(game, state, game.text_to_action(state, text))
    batch = jax.tree.map(lambda leaf: leaf[None], state)
    choice = jax.jit(GreedyPlayer(game).choose)(jax.random.key(0), batch)
    mate = game.text_to_action(state, "d8h4")
    assert choice.action[0] == mate
    assert choice.value[0] == 1


def test_no_key_is_used_twice():
    game = games.make("tic_tac_toe")
    with jax.debug_key_reuse(True):
        jax.jit(GreedyPlayer(game).choose)(jax.random.key(0), after(game, 0))
