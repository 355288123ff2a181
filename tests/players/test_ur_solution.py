import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from azjax import arena, games, players
from azjax.games.ur import THROWS, RoyalGameOfUr
from azjax.players import RandomPlayer, ur_solution
from azjax.players.core import Choice

GAME = RoyalGameOfUr(pieces=2)


@struct.dataclass
class FixedPlayer:
    """Chooses one action, by its number."""

    action: int

    def choose(self, rng_key, states) -> Choice:
        del rng_key
        action = jnp.full(states.terminated.shape, self.action)
        return Choice(action, jax.nn.one_hot(action, 16), jnp.zeros(action.shape))


@pytest.fixture(scope="module")
def solution():
    return ur_solution.solve(2)


@pytest.fixture(scope="module")
def perfect():
    return players.load_compiled("perfect", GAME)


@pytest.fixture(scope="module")
def positions():
    return arena.shipped(GAME)


@pytest.fixture(scope="module")
def lost(positions):
    """`[N, A]`: the win probability that each action loses, NaN where illegal."""
    values = positions.action_values
    return (np.nanmax(values, axis=1, keepdims=True) - values) / 2


def test_the_first_player_wins_as_often_as_published(solution):
    # In steps of 1 / 65535: finkel2p.rgu of https://github.com/RoyalUr/RoyalUr-Python.
    assert round(65535 * solution.win_probability[0, 0]) == 33985


def test_games_with_one_piece_are_won_as_often_as_computed():
    """There are no choices in them."""
    rng, wins = np.random.default_rng(0), 0
    for _ in range(4000):
        places, player = [0, 0], 0
        while max(places) < 15:
            own, other = places[player], places[1 - player]
            end = own + int(rng.binomial(4, 0.5))
            meets = end == other and 5 <= end <= 12
            if end > own and end <= 15 and not (meets and end == 8):
                places[player] = end
                if meets:
                    places[1 - player] = 0
                if end in (4, 8, 14):
                    continue
            player = 1 - player
        wins += places[0] == 15
    probability = ur_solution.solve(1).win_probability[0, 0]
    assert abs(wins / 4000 - probability) < 4 * 0.5 / 4000**0.5


def test_the_value_before_a_roll_is_the_mean_of_the_best_moves(solution, positions):
    """The moves are those of the game, so that the rules of the solver are the same."""
    states = positions.states
    mean = 0
    for roll, probability in enumerate(THROWS):
        rolled = dataclasses.replace(states, roll=np.full_like(states.roll, roll))
        values, _ = ur_solution.action_values(GAME, solution, rolled)
        mean += probability * (np.nanmax(values, axis=1) + 1) / 2
    own, other = (solution.number[pieces] for pieces in states.pieces)
    np.testing.assert_allclose(mean, solution.win_probability[own, other], atol=1e-6)


def test_graded_positions_have_several_actions_with_values(positions):
    legal = np.asarray(jax.vmap(GAME.legal_action_mask)(positions.states))
    np.testing.assert_array_equal(~np.isnan(positions.action_values), legal)
    assert legal.sum(axis=1).min() == 2
    assert np.nanmax(np.abs(positions.action_values)) <= 1
    assert not positions.states.terminated.any()


def test_positions_of_more_pieces_are_those_of_two_with_the_others_at_home(positions):
    """Also their moves lead to such positions, by the rules of the larger game."""
    game = games.make("ur")
    larger = arena.shipped(game)
    np.testing.assert_array_equal(larger.action_values, positions.action_values)
    step = jax.jit(lambda game, *args: jax.vmap(game.step)(*args), static_argnums=0)
    actions = np.nanargmax(positions.action_values, axis=1)
    for found, expected in (
        (larger.states, positions.states),
        (step(game, larger.states, actions), step(GAME, positions.states, actions)),
    ):
        pieces = tuple(side - (5 << 15) for side in found.pieces)
        found_here = dataclasses.replace(found, pieces=pieces)
        jax.tree.map(np.testing.assert_array_equal, found_here, expected)


@pytest.mark.parametrize("name", ["ur:1", "ur:2,max_moves=20", "ur:7,max_moves=20"])
def test_other_games_have_no_positions(name):
    assert arena.shipped(games.make(name)) is None


@pytest.mark.parametrize("name", ["ur:3", "ur:2,max_moves=20"])
def test_other_games_have_no_perfect_player(name):
    with pytest.raises(ValueError, match="ur with at most 2 pieces and no low max_mov"):
        players.load("perfect", games.make(name))


def test_the_perfect_player_loses_no_win_probability(perfect, positions):
    grade = arena.grade(perfect, positions, jax.random.key(0))
    np.testing.assert_array_equal(grade.lost, 0)


def test_its_value_is_that_of_the_best_move(perfect, positions):
    with jax.debug_key_reuse(True):
        choice = players.choose(perfect, jax.random.key(0), positions.states)
    best = np.nanmax(positions.action_values, axis=1)
    np.testing.assert_array_equal(choice.value, best)


def test_moves_of_the_same_value_are_equally_likely(perfect, positions):
    table = jnp.full_like(perfect.solution.win_probability, 0.5)
    equal = perfect.solution._replace(win_probability=table)
    player = dataclasses.replace(perfect, solution=equal)
    choice = players.choose(player, jax.random.key(0), positions.states)
    legal = ~np.isnan(positions.action_values)
    np.testing.assert_allclose(choice.policy, legal / legal.sum(axis=1, keepdims=True))


def test_the_perfect_player_beats_random_moves(perfect):
    openings = arena.suite(GAME, jax.random.key(0), 100, 0)
    match = arena.play_openings(
        GAME, perfect, RandomPlayer(GAME), openings, jax.random.key(1)
    )
    assert match.total.score > 0.6


def test_a_player_loses_the_win_probability_of_its_actions(positions, lost):
    key = jax.random.key(0)
    best = (np.nanmax(positions.action_values, axis=1) + 1) / 2
    for action in (10, 15):
        grade = arena.grade(FixedPlayer(action), positions, key)
        expected = np.where(np.isnan(lost[:, action]), best, lost[:, action])
        np.testing.assert_allclose(grade.lost, expected, atol=1e-6)
        np.testing.assert_allclose(grade.mean_lost, expected.mean(), atol=1e-6)
    # A random player loses the mean of all actions.
    expected = np.nanmean(lost, axis=1)
    deviation = np.nanstd(lost, axis=1)
    grade = arena.grade(RandomPlayer(GAME), positions, key)
    error = abs(grade.mean_lost - expected.mean())
    assert error < 5 * np.sqrt((deviation**2).sum()) / len(positions)


def test_the_interval_of_the_lost_probability_covers_95_percent(lost):
    rng, holds = np.random.default_rng(0), 0
    population = np.nanmax(lost, axis=1)
    for _ in range(1000):
        grade = arena.Grade({}, np.zeros(0, bool), rng.choice(population, 500))
        low, high = grade.mean_lost_interval
        holds += low <= population.mean() <= high
    assert 925 < holds < 975
