import functools

import jax
import numpy as np
import pytest

from azjax import games, players
from azjax.arena import play_match
from azjax.players import MCTSPlayer, choose
from azjax.players.mcts import playout_results

TIC_TAC_TOE = games.make("tic_tac_toe")
CONNECT_FOUR = games.make("connect_four")
KEY = jax.random.key(0)
KEEPING = MCTSPlayer(TIC_TAC_TOE, 100, tree_reuse_nodes=100)


@functools.cache
def step_of(game):
    return jax.jit(game.step)


def after(game, *actions):
    state = game.init()
    for action in actions:
        state = step_of(game)(state, np.int32(action))
    return state


def batch(*states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def repeated(state, number):
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (number,)), state)


@jax.jit
def play_out(rng_key, states):
    return playout_results(TIC_TAC_TOE, rng_key, states)


def test_playout_results_match_known_random_play():
    # The first player wins 58.5%, the second 28.8%: 737/1260 and 121/420.
    expected, number = 737 / 1260 - 121 / 420, 20_000
    results = np.asarray(play_out(KEY, repeated(TIC_TAC_TOE.init(), number)))
    # The playouts of different games differ.
    assert set(results.tolist()) == {-1, 0, 1}
    # Six standard deviations of the mean.
    assert results.mean() == pytest.approx(expected, abs=6 * 0.88 / number**0.5)


def test_playout_results_are_for_the_player_to_move():
    # The first player has the top row; then the second is to move, in a lost game.
    states = batch(after(TIC_TAC_TOE, 0, 3, 1, 4, 2), TIC_TAC_TOE.init())
    assert play_out(KEY, states)[0] == -1


def test_it_wins_and_blocks():
    states = batch(
        after(CONNECT_FOUR, 0, 6, 0, 6, 0, 5),  # three in column 0, to move
        after(CONNECT_FOUR, 0, 6, 0, 5, 0),  # the opponent has them
        after(CONNECT_FOUR, 2, 6, 3, 6),  # two in the middle: three are a fork
    )
    choice = jax.device_get(choose(MCTSPlayer(CONNECT_FOUR, 1000), KEY, states))
    assert choice.action[0] == 0
    assert choice.action[1] == 0
    assert int(choice.action[2]) in {1, 4}
    assert choice.value[0] > 0.5


def test_it_does_not_lose_tic_tac_toe_to_perfect_play():
    player = MCTSPlayer(TIC_TAC_TOE, 3000)
    opponent = players.MinimaxPlayer(TIC_TAC_TOE, 9)
    result = play_match(TIC_TAC_TOE, player, opponent, KEY, 8, opening_moves=0)
    assert result.total.losses == 0


@pytest.mark.slow
def test_more_playouts_are_stronger():
    result = play_match(
        CONNECT_FOUR, MCTSPlayer(CONNECT_FOUR, 64), MCTSPlayer(CONNECT_FOUR, 4), KEY, 64
    )
    assert result.interval[0] > 0.5


def test_it_returns_an_analysis():
    state = after(TIC_TAC_TOE, 0, 3, 1, 4)
    session = players.start_session(KEEPING, TIC_TAC_TOE, seed=1)
    decision = session.choose(state, [0, 3, 1, 4])
    legal = np.isin(np.arange(9), [0, 1, 3, 4], invert=True)
    analysis = decision.analysis
    assert decision.action == 2
    assert analysis.visits.sum() == 100
    assert (analysis.visits > 0).tolist() == legal.tolist()
    np.testing.assert_allclose(analysis.prior, legal / 5, rtol=1e-6)
    assert analysis.action_values[2] == 1
    assert analysis.line.tolist() == [2] + [-1] * 15
    np.testing.assert_allclose(decision.policy, analysis.visits / 100, rtol=1e-6)
    mean = (analysis.visits * analysis.action_values).sum() / 100
    assert decision.value == pytest.approx(mean, abs=1e-5)


def test_search_continues_from_the_carry():
    session = players.start_session(KEEPING, TIC_TAC_TOE, seed=0)
    session.choose(TIC_TAC_TOE.init(), [])
    moves = [4, 0]
    decision = session.choose(after(TIC_TAC_TOE, *moves), moves)
    assert decision.analysis.visits.sum() > 100
    # After an undo the subtree is not available: the search starts from an empty tree.
    decision = session.choose(TIC_TAC_TOE.init(), [])
    assert decision.analysis.visits.sum() == 100


@pytest.fixture(scope="module")
def policies():
    """Returns the choices in 16 games with seeds 1, 1 and 2.

    Reusing a key raises an error.
    """
    states = repeated(TIC_TAC_TOE.init(), 16)
    player = MCTSPlayer(TIC_TAC_TOE, 8)
    with jax.debug_key_reuse(True):
        return [
            np.asarray(choose(player, jax.random.key(seed), states).policy)
            for seed in (1, 1, 2)
        ]


def test_the_seed_determines_the_choice(policies):
    first, again, other = policies
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first != first[0]).any()  # the games of a batch differ


def test_no_key_is_used_twice(policies):
    """The fixture raises an error if a key is reused."""
    assert len(policies) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("more", "fewer"), [(1000, 100), (100, 10)])
def test_ten_times_the_playouts_win_the_match(more, fewer):
    stronger, weaker = MCTSPlayer(CONNECT_FOUR, more), MCTSPlayer(CONNECT_FOUR, fewer)
    result = play_match(CONNECT_FOUR, stronger, weaker, KEY, 200)
    assert result.interval[0] > 0.5
