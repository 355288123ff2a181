import jax
import numpy as np
import pytest
from coin_toss import FIRST, CoinToss
from expectimax import expected_action_values, expected_result
from minimax import exact_scores

from azjax import games
from azjax.arena import exhaustive

GAME = games.make("tic_tac_toe")


@pytest.fixture(scope="module")
def solution():
    return exhaustive.solve(GAME)


def boards(states) -> np.ndarray:
    """Returns `[N, 9]`: 1 for the mover's marks, -1 for the opponent's, 0 for empty."""
    observations = np.asarray(jax.jit(jax.vmap(GAME.observe))(states))
    return (observations[..., 0] - observations[..., 1]).reshape(-1, 9).astype(int)


def test_tic_tac_toe_has_the_known_positions_and_results(solution):
    assert len(solution.values) == len(np.unique(boards(solution.states), axis=0))
    assert len(solution.values) == 5478
    rewards = np.asarray(jax.jit(jax.vmap(GAME.rewards))(solution.states))[:, 0]
    results = rewards[solution.states.terminated].astype(int).tolist()
    assert [results.count(result) for result in (1, -1, 0)] == [626, 316, 16]
    counts = np.bincount(solution.num_moves)
    assert counts.tolist() == [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78]


def test_values_equal_minimax_by_recursion_and_those_of_the_best_legal_actions(
    solution,
):
    expected = np.sign(exact_scores(solution.states))
    np.testing.assert_array_equal(solution.values, expected)
    np.testing.assert_array_equal(solution.action_values[0], np.zeros(9))
    is_going = ~solution.states.terminated
    best = np.nanmax(solution.action_values[is_going], axis=1)
    np.testing.assert_array_equal(best, solution.values[is_going])
    legal = (boards(solution.states) == 0) & is_going[:, None]
    np.testing.assert_array_equal(~np.isnan(solution.action_values), legal)


def test_games_with_too_many_positions_or_moves_are_refused():
    with pytest.raises(ValueError, match="tic_tac_toe has more than 1000 positions"):
        exhaustive.solve(GAME, max_positions=1000)
    short = type("Short", (type(GAME),), {"max_moves": 3})()
    with pytest.raises(ValueError, match="max_moves of tic_tac_toe is 3, and some"):
        exhaustive.solve(short)


def test_with_chance_values_are_means_over_the_outcomes():
    game = CoinToss()
    solution = exhaustive.solve(game)
    # Either player may have the first move.
    np.testing.assert_array_equal(np.flatnonzero(solution.num_moves == 0), [0, 1])
    first = solution.values[:2] * (1 - 2 * solution.states.current_player[:2])
    by_player = [expected_result(0, 0, player) for player in range(2)]
    order = solution.states.current_player[:2]
    np.testing.assert_allclose(first, np.array(by_player)[order], atol=1e-6)
    assert 0 < FIRST[:2] @ by_player < 0.1
    is_going = ~solution.states.terminated
    assert np.isnan(solution.action_values[~is_going]).all()
    rows = np.flatnonzero(is_going)[::7]
    expected = expected_action_values(
        jax.tree.map(lambda leaf: leaf[rows], solution.states)
    )
    np.testing.assert_allclose(solution.action_values[rows], expected, atol=1e-6)
    np.testing.assert_allclose(
        solution.values[rows], np.nanmax(expected, axis=1), atol=1e-6
    )
    with pytest.raises(ValueError, match="coin_toss has more than 1000 positions"):
        exhaustive.solve(game, max_positions=1000)
