import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.players import RandomPlayer

GAME = games.make("connect_four")
# Column 1 is full; the other six are empty.
NUM_GAMES = 3000


def column_1_full():
    state = GAME.init()
    for _ in range(6):
        state = GAME.step(state, jnp.int32(0))
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (NUM_GAMES,)), state)


def test_every_legal_move_is_as_likely_as_any_other():
    choice = RandomPlayer(GAME).choose(jax.random.key(0), column_1_full())
    counts = np.bincount(choice.action, minlength=7)
    assert counts[0] == 0
    # Six standard deviations of a binomial count.
    expected = NUM_GAMES / 6
    np.testing.assert_allclose(counts[1:], expected, atol=6 * np.sqrt(expected * 5 / 6))


def test_the_policy_is_even_and_the_value_unknown():
    choice = RandomPlayer(GAME).choose(jax.random.key(0), column_1_full())
    np.testing.assert_allclose(choice.policy[0], [0, *[1 / 6] * 6], rtol=1e-6)
    np.testing.assert_array_equal(choice.value, 0)


def test_no_key_is_used_twice():
    with jax.debug_key_reuse(True):
        jax.jit(RandomPlayer(GAME).choose)(jax.random.key(0), column_1_full())
