import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.arena.openings import suite
from azjax.players import GreedyPlayer


def wins_of(game, state, step):
    """The legal moves that win at once."""
    mover = int(state.current_player)
    legal = np.flatnonzero(game.legal_action_mask(state))
    ends = {int(action): step(state, int(action)) for action in legal}
    return {a for a, end in ends.items() if game.rewards(end)[mover] > 0}


def best_moves(game, state, step):
    """What a greedy player may choose, move by move."""
    wins = wins_of(game, state, step)
    if wins:
        return wins
    mover = int(state.current_player)
    dangers = {}
    for action in np.flatnonzero(game.legal_action_mask(state)).tolist():
        after = step(state, action)
        if after.terminated:
            dangers[action] = 0 if game.rewards(after)[mover] == 0 else 10**6
        else:
            dangers[action] = len(wins_of(game, after, step))
    return {a for a, danger in dangers.items() if danger == min(dangers.values())}


@pytest.mark.parametrize(
    ("name", "num_moves"),
    [("connect_four", 12), ("gomoku:4,4,3", 4), ("breakthrough:5,4", 13)],
)
def test_it_wins_if_it_can_and_else_blocks_what_it_can(name, num_moves):
    game = games.make(name)
    states = suite(game, jax.random.key(0), 12, num_moves).states
    choice = jax.jit(GreedyPlayer(game).choose)(jax.random.key(1), states)
    step = jax.jit(game.step)
    kinds = set()
    for index in range(12):
        state = jax.tree.map(lambda leaf, index=index: leaf[index], states)
        best = best_moves(game, state, step)
        assert set(np.flatnonzero(choice.policy[index]).tolist()) == best
        assert int(choice.action[index]) in best
        kinds.add(float(choice.value[index]))
    assert len(kinds) > 1  # or the positions are too quiet to show anything


def after(game, *actions):
    state = game.init()
    for action in actions:
        state = game.step(state, jnp.int32(action))
    return jax.tree.map(lambda leaf: leaf[None], state)


def test_its_value_tells_what_it_saw():
    game = games.make("connect_four")
    choose = jax.jit(GreedyPlayer(game).choose)
    for moves, value in (
        ((), 0),
        ((0, 6, 0, 6, 0, 6), 1),  # three discs in column 0, and to move
        ((0, 6, 0, 6, 0), 0),  # which the opponent can block
        ((2, 0, 3, 0, 4), -1),  # no block is enough
    ):
        assert choose(jax.random.key(0), after(game, *moves)).value[0] == value


def test_of_two_threats_it_blocks_one():
    game = games.make("connect_four")
    state = after(game, 2, 0, 3, 0, 4)
    policy = GreedyPlayer(game).choose(jax.random.key(0), state).policy[0]
    np.testing.assert_allclose(policy, [0, 0.5, 0, 0, 0, 0.5, 0])


@pytest.mark.slow
def test_it_plays_a_game_of_many_actions():
    game = games.make("chess")
    # Fool's mate: 1. f3 e5 2. g4 and Qh4 mates.
    state = game.init()
    for text in ("f2f3", "e7e5", "g2g4"):
        state = game.step(state, jnp.int32(game.text_to_action(state, text)))
    batch = jax.tree.map(lambda leaf: leaf[None], state)
    choice = jax.jit(GreedyPlayer(game).choose)(jax.random.key(0), batch)
    mate = game.text_to_action(state, "d8h4")
    assert choice.action[0] == mate
    assert choice.value[0] == 1


def test_no_key_is_used_twice():
    game = games.make("tic_tac_toe")
    with jax.debug_key_reuse(True):
        jax.jit(GreedyPlayer(game).choose)(jax.random.key(0), after(game, 0))
