import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untrained import untrained

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players.model import evaluate, make_root
from azjax.search import AlphaZeroConfig
from azjax.training import SelfPlayConfig
from azjax.training.self_play import SelfPlay

GAME = games.make("tic_tac_toe")
NETWORK = NetworkConfig(
    trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8, window=3)
)
NUM_GAMES = 32


@pytest.fixture(scope="module")
def found():
    """Returns searches of the initial position with exploration, by PUCT."""
    network, variables = untrained(GAME, NETWORK)
    config = SelfPlayConfig(num_games=NUM_GAMES)
    search_all = SelfPlay(GAME, network, AlphaZeroConfig(), config).search_all

    @jax.jit
    def search_first(variables, rng_key):
        states = jax.tree.map(lambda leaf: jnp.stack([leaf] * NUM_GAMES), GAME.init())
        root = make_root(GAME, *evaluate(GAME, network, variables, states), states)
        return search_all(variables, jnp.int32(16), rng_key, root, None)

    return jax.device_get(search_first(variables, jax.random.key(0)))


def test_puct_plays_the_most_visited_move_where_it_explores(found):
    """In its first moves, self-play samples from the policy instead."""
    played = found.policy[np.arange(NUM_GAMES), found.edge]
    np.testing.assert_array_equal(played, found.policy.max(axis=-1))


def test_noise_makes_puct_search_the_same_position_differently(found):
    assert len(np.unique(found.policy, axis=0)) > 1


def test_the_value_is_the_mean_of_the_qvalues_under_the_policy(found):
    """Actions without visits have the value itself, so they do not change the mean."""
    mean = (found.policy * found.qvalues).sum(axis=-1)
    np.testing.assert_allclose(mean, found.value, atol=1e-5)
    assert np.ptp(found.qvalues, axis=-1).max() > 0


def test_the_policy_of_puct_is_above_0_at_visited_actions(found):
    np.testing.assert_array_equal(found.is_visited, found.policy > 0)
    assert not found.is_visited.all()
