import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.arena.exhaustive import solve
from azjax.arena.matches import _random_openings
from azjax.players import MinimaxPlayer, choose

TIC_TAC_TOE = games.make("tic_tac_toe")
CONNECT_FOUR = games.make("connect_four")
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def solution():
    return solve(TIC_TAC_TOE)


def negamax(game, states, depth, num_moves=1):
    """The scores `[N, A]` of all moves, by looking at every position of the tree."""
    num_actions = game.num_actions
    after = jax.vmap(jax.vmap(game.step, (None, 0)), (0, None))(
        states, jnp.arange(num_actions)
    )
    after = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), after)
    mover = np.repeat(np.asarray(states.current_player), num_actions)
    result = np.asarray(jax.vmap(game.rewards)(after))[np.arange(mover.size), mover]
    if depth == 1:
        value = -np.asarray(jax.vmap(game.evaluate)(after))
    else:
        value = -negamax(game, after, depth - 1, num_moves + 1).max(axis=-1)
    value = np.where(after.terminated, result * (2 - num_moves / 1024), value)
    legal = np.asarray(jax.vmap(game.legal_action_mask)(states))
    return np.where(legal, value.reshape(legal.shape), -np.inf)


@pytest.mark.parametrize(
    ("name", "depth", "num_moves"),
    [
        ("connect_four", 1, 10),
        ("connect_four", 2, 14),
        ("connect_four", 4, 2),
        ("connect_four", 4, 16),
        ("connect_four", 5, 25),
        ("gomoku:4,4,3", 3, 3),
        ("gomoku:4,4,3", 4, 5),
        ("tic_tac_toe", 5, 2),
        ("breakthrough:4,3", 3, 5),
        ("othello", 2, 20),
    ],
)
def test_it_finds_what_a_search_of_the_whole_tree_finds(name, depth, num_moves):
    game = games.make(name)
    states = _random_openings(game, jax.random.key(depth), 12, num_moves)
    choice = choose(MinimaxPlayer(game, depth), KEY, states)
    scores = negamax(game, states, depth)
    top = scores.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(choice.value, top[:, 0].clip(-1, 1), atol=1e-6)
    np.testing.assert_array_equal(np.asarray(choice.policy) > 0, scores >= top - 1e-6)


def test_at_full_depth_tic_tac_toe_is_played_perfectly_from_every_position(solution):
    running = ~solution.states.terminated
    states = jax.tree.map(lambda leaf: leaf[running], solution.states)
    choice = choose(MinimaxPlayer(TIC_TAC_TOE, 9), KEY, states)
    np.testing.assert_array_equal(choice.value, solution.values[running])
    action_values = solution.action_values[running]
    chosen = np.asarray(choice.policy) > 0
    assert (action_values == solution.values[running, None])[chosen].all()


@pytest.mark.parametrize("seat", [0, 1])
def test_at_full_depth_tic_tac_toe_is_never_lost_whatever_the_replies(seat):
    player = MinimaxPlayer(TIC_TAC_TOE, 9)
    states = jax.tree.map(lambda leaf: leaf[None], TIC_TAC_TOE.init())
    step = jax.vmap(TIC_TAC_TOE.step)
    for num_moves in range(9):
        if num_moves % 2 == seat:
            moves = np.asarray(choose(player, KEY, states).policy) > 0
        else:
            moves = np.asarray(jax.vmap(TIC_TAC_TOE.legal_action_mask)(states))
        parent, action = np.nonzero(moves)
        before = jax.tree.map(lambda leaf, parent=parent: leaf[parent], states)
        after = step(before, action)
        results = np.asarray(jax.vmap(TIC_TAC_TOE.rewards)(after))[:, seat]
        assert (results >= 0).all()
        running = ~np.asarray(after.terminated)
        states = jax.tree.map(lambda leaf, running=running: leaf[running], after)
    assert len(states.terminated) == 0


def after(game, *actions):
    state = game.init()
    for action in actions:
        state = game.step(state, jnp.int32(action))
    return state


def batch(*states):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def test_it_wins_as_soon_as_it_can():
    # Three discs in column 0, and two in the middle that would win three moves later.
    states = batch(after(CONNECT_FOUR, 0, 6, 0, 6, 0, 1, 3, 1, 4, 1))
    choice = choose(MinimaxPlayer(CONNECT_FOUR, 6), KEY, states)
    np.testing.assert_array_equal(choice.policy, [[1, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(choice.value, [1])


def test_it_loses_as_late_as_it_can():
    # Three in the bottom row with both ends open: only a block delays the end.
    states = batch(after(CONNECT_FOUR, 2, 0, 3, 0, 4))
    choice = choose(MinimaxPlayer(CONNECT_FOUR, 5), KEY, states)
    assert set(np.flatnonzero(choice.policy[0]).tolist()) <= {0, 1, 5}
    np.testing.assert_array_equal(choice.value, [-1])


def test_equally_good_moves_are_equally_likely():
    states = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (900,)), TIC_TAC_TOE.init()
    )
    choice = choose(MinimaxPlayer(TIC_TAC_TOE, 1), KEY, states)
    np.testing.assert_allclose(choice.policy[0], np.full(9, 1 / 9), rtol=1e-6)
    counts = np.bincount(choice.action, minlength=9)
    # Six standard deviations of a binomial count.
    np.testing.assert_allclose(counts, 100, atol=6 * np.sqrt(100 * 8 / 9))


def test_a_position_is_searched_alike_alone_and_among_others():
    states = _random_openings(CONNECT_FOUR, jax.random.key(5), 8, 8)
    player = MinimaxPlayer(CONNECT_FOUR, 4)
    together = choose(player, KEY, states)
    for index in range(8):
        alone = choose(
            player, KEY, jax.tree.map(lambda leaf, i=index: leaf[i : i + 1], states)
        )
        chex.assert_trees_all_close(together.policy[index], alone.policy[0])
        chex.assert_trees_all_close(together.value[index], alone.value[0])


@pytest.mark.slow
def test_a_mate_in_two_is_found_in_chess():
    game = games.make("chess")
    # Two rooks against a bare king.
    state = game.from_fen("7k/8/8/8/8/8/R7/1R4K1 w - - 0 1")
    choice = choose(MinimaxPlayer(game, 3), KEY, batch(state))
    assert choice.value[0] == 1
    assert game.action_to_text(state, int(choice.action[0])) in {"a2a7", "b1b7"}


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        jax.jit(MinimaxPlayer(TIC_TAC_TOE, 2).choose)(KEY, batch(TIC_TAC_TOE.init()))
