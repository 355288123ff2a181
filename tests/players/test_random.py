import jax
import numpy as np
import pytest

from azjax import games
from azjax.players import RandomPlayer

GAME = games.make("connect_four")
# Column 1 is full; the other six are empty.
NUM_GAMES = 3000


@pytest.fixture(scope="module")
def column_1_full():
    step, state = jax.jit(GAME.step), GAME.init()
    for _ in range(6):
        state = step(state, np.int32(0))
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (NUM_GAMES,)), state)


@pytest.fixture(scope="module")
def choice(column_1_full):
    """Returns the choices; reusing a key raises an error."""
    with jax.debug_key_reuse(True):
        choose = jax.jit(RandomPlayer(GAME).choose)
        return jax.device_get(choose(jax.random.key(0), column_1_full))


def test_legal_moves_are_equally_likely_and_no_key_is_used_twice(choice):
    counts = np.bincount(choice.action, minlength=7)
    assert counts[0] == 0
    # Six standard deviations of a binomial count.
    expected = NUM_GAMES / 6
    np.testing.assert_allclose(counts[1:], expected, atol=6 * np.sqrt(expected * 5 / 6))


def test_the_policy_is_uniform_and_the_value_0(choice):
    np.testing.assert_allclose(choice.policy[0], [0, *[1 / 6] * 6], rtol=1e-6)
    np.testing.assert_array_equal(choice.value, 0)
