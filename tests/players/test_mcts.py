import jax
import numpy as np
import pytest
from minimax import exact_move_scores, exact_score

from azjax import games
from azjax.arena import play_match
from azjax.players import MCTSPlayer, choose, init_carry
from azjax.players.search_players import playout_results

TIC_TAC_TOE = games.make("tic_tac_toe")
CONNECT_FOUR = games.make("connect_four")
NUM_GAMES = 4


def test_playout_results_match_known_random_play_for_the_player_to_move(after):
    # The first player wins 58.5%, the second 28.8%: 737/1260 and 121/420.
    expected, number = 737 / 1260 - 121 / 420, 20_000
    # In the last game the first player has the top row, and the second is to move.
    states = after([], [0, 3, 1, 4, 2])
    states = jax.tree.map(lambda leaf: leaf.repeat([number, 1], axis=0), states)
    play_out = jax.jit(lambda key, states: playout_results(TIC_TAC_TOE, key, states))
    *results, lost = play_out(jax.random.key(0), states).tolist()
    assert lost == -1
    # The playouts of different games differ.
    assert set(results) == {-1, 0, 1}
    # Six standard deviations of the mean.
    assert np.mean(results) == pytest.approx(expected, abs=6 * 0.88 / number**0.5)


# Choices with many playouts


@pytest.fixture(scope="module")
def chosen(after):
    """Returns the choices in 4 positions; reusing a key raises an error."""
    player = MCTSPlayer(TIC_TAC_TOE, 1000)

    def choice(states, seed=0):
        with jax.debug_key_reuse(True):
            return jax.device_get(choose(player, jax.random.key(seed), states))

    choice(after(*[[]] * NUM_GAMES))  # compiles it
    return choice


def test_the_seed_determines_the_choice_and_no_key_is_used_twice(chosen, after):
    states = after(*[[]] * NUM_GAMES)
    first, again, other = (chosen(states, seed).policy for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first != first[0]).any()  # the games of a batch differ


def sides(moves):
    """Returns the marks of mover and opponent."""
    return [sum(1 << move for move in moves[start::-2]) for start in (-2, -1)]


def value(moves):
    """Returns the result of perfect play for the player to move."""
    return np.sign(exact_score(*sides(moves)))


def best_moves(moves):
    scores = exact_move_scores(*sides(moves))
    return [move for move, score in scores.items() if np.sign(score) == value(moves)]


def test_it_wins_and_blocks(chosen, after):
    # A line can be completed; it must be blocked; a fork wins.
    positions = [0, 3, 1, 4], [0, 4, 1], [0, 1]
    choice = chosen(after(*positions, []))
    assert choice.action[:2].tolist() == [2, 2]
    assert choice.action[2] in best_moves((0, 1))
    assert choice.value[0] > 0.5
    assert choice.value[2] > 0.5


def test_it_does_not_lose_tic_tac_toe_to_perfect_play(chosen, after):
    draw = np.random.default_rng(0).choice
    played = [(), (), (4,), (0,)]
    while played:
        actions = chosen(after(*played, *[[]] * (NUM_GAMES - len(played)))).action
        remaining = []
        for moves, action in zip(played, actions, strict=False):
            assert action not in moves
            line = (*moves, int(action))
            # It has won, or will win; or the board is full.
            if value(line) == -1 or len(line) == 9:
                continue
            line = (*line, int(draw(best_moves(line))))
            assert value(line) > -1
            if len(line) < 9:
                remaining.append(line)
        played = remaining


# Trees that are kept


@pytest.fixture(scope="module")
def searched(playouts, after, analyze):
    """The choice, the analysis and the carry after the first search of four games."""
    empty = jax.device_get(init_carry(playouts, after(*[[]] * 4)))
    # The first player has cells 0 and 1 and takes 2.
    return analyze(playouts, after([0, 3, 1, 4], [], [], []), empty)


def test_it_returns_an_analysis(playouts, searched):
    choice, analysis, _ = searched
    legal = np.isin(np.arange(9), [0, 1, 3, 4], invert=True)
    assert choice.action[0] == 2
    assert analysis.visits.sum(axis=1).tolist() == [playouts.simulations] * 4
    assert (analysis.visits[0] > 0).tolist() == legal.tolist()
    np.testing.assert_allclose(analysis.prior[0], legal / 5, rtol=1e-6)
    assert analysis.action_values[0, 2] == 1
    assert analysis.line[0].tolist() == [2] + [-1] * 15
    policy = analysis.visits / playouts.simulations
    np.testing.assert_allclose(choice.policy, policy, rtol=1e-6)
    mean = (policy * analysis.action_values).sum(axis=1)
    np.testing.assert_allclose(choice.value, mean, rtol=1e-5, atol=1e-5)


def test_search_continues_from_the_carry(playouts, searched, after, analyze):
    *_, carry = searched
    _, analysis, carry = analyze(playouts, after([0, 3, 1, 4], [4], [0], []), carry)
    assert (analysis.visits.sum(axis=1) > playouts.simulations).all()
    # After an undo the subtree is not available: the search starts from an empty tree.
    _, analysis, _ = analyze(playouts, after(*[[]] * 4), carry)
    is_new = analysis.visits.sum(axis=1) == playouts.simulations
    assert is_new.tolist() == [True, True, True, False]


@pytest.mark.slow
def test_ten_times_the_playouts_win_the_match():
    stronger, weaker = MCTSPlayer(CONNECT_FOUR, 100), MCTSPlayer(CONNECT_FOUR, 10)
    result = play_match(CONNECT_FOUR, stronger, weaker, jax.random.key(0), 60)
    assert result.interval[0] > 0.5
