import jax
import numpy as np
import pytest
from data.game_rows import GAME, rows_of
from untrained import untrained

from azjax.data import unpack_states
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import AlphaZeroPlayer
from azjax.search import GumbelConfig
from azjax.training.reanalysis import PositionSearches

TRUNK = DenseTrunkConfig(num_blocks=1, width=5, stem_channels=8, window=2)
# X completes the upper row with 2, and lets O win with 5 after 8.
GIVEN_AWAY = [0, 3, 1, 4, 8, 5]


@pytest.fixture(scope="module")
def player():
    network, variables = untrained(GAME, NetworkConfig(trunk=TRUNK), seed=3)
    return AlphaZeroPlayer(GAME, GumbelConfig(use_solver=True), 150, network, variables)


@pytest.fixture(scope="module")
def searched(player):
    """The rows of a game, twice, before and after the searches in two batches."""
    rows = rows_of({5: GIVEN_AWAY, 6: GIVEN_AWAY})
    return rows, PositionSearches(player, 8, seed=0).search_rows(1, rows)


def test_positions_moves_and_results_remain(searched):
    before, after = searched
    for name in ("game", "ply", "player", "move", "state", "reward", "terminated"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_values_and_regrets_are_those_of_perfect_play(searched):
    """Move 4 misses a win and lets the opponent win, which move 5 does."""
    _, after = searched
    assert after.value[4] == pytest.approx(1)
    assert after.regret[4] == pytest.approx(2)
    assert after.regret[5] == 0


def test_the_policy_target_prefers_the_winning_move(searched):
    _, rows = searched
    policies = np.split(
        np.arange(len(rows.policy_actions)), rows.policy_counts.cumsum()
    )
    best = policies[4][rows.policy_probabilities[policies[4]].argmax()]
    assert rows.policy_actions[best] == 2


def test_every_position_has_a_policy_target_and_the_simulations(searched):
    _, rows = searched
    assert (rows.policy_counts > 0).all()
    np.testing.assert_array_equal(rows.simulations, 150)


@pytest.fixture(scope="module")
def analyzed(player, searched):
    """The player's choices and analysis of these positions, in one batch of 12."""
    states = unpack_states(GAME, searched[0].state)
    found = jax.jit(player.analyze)(jax.random.key(9), states, None)
    return jax.device_get(found[:2])


def test_values_and_draws_are_those_of_the_player(analyzed, searched):
    """So they do not depend on the size of a batch, nor on the key."""
    choice, _ = analyzed
    _, after = searched
    np.testing.assert_allclose(after.value, choice.value, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        after.draw_probability, choice.draw, rtol=1e-5, atol=1e-4
    )


def test_values_of_actions_are_those_of_the_player(analyzed, searched):
    _, analysis = analyzed
    _, after = searched
    place = np.repeat(np.arange(12), after.policy_counts), after.policy_actions
    is_visited = analysis.visits[place] > 0
    expected = np.where(is_visited, analysis.action_values[place], np.nan)
    np.testing.assert_allclose(after.policy_values, expected, rtol=1e-5, atol=2e-3)


def test_a_move_without_visits_has_the_value_of_the_position(player):
    rows = rows_of({5: GIVEN_AWAY})
    rows.move[4] = 0  # is occupied, and never visited; the value is 1
    found = PositionSearches(player, 8, seed=0).search_rows(1, rows)
    assert found.regret[4] == pytest.approx(0)


def test_a_search_without_finite_values_is_refused(player):
    broken = player.replace(
        variables=jax.tree.map(
            lambda leaf: np.full_like(leaf, np.nan), player.variables
        )
    )
    with pytest.raises(ValueError, match=r"the player's search: .*: nan"):
        PositionSearches(broken, 8, seed=0).search_rows(1, rows_of({5: GIVEN_AWAY}))
