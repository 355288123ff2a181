import jax
import numpy as np
from players.engines import position

from azjax import games
from azjax.players import RandomPlayer

GAME = games.make("connect_four")
# Column 1 is full; the other six are empty.
NUM_GAMES = 3000


def test_legal_moves_are_equally_likely_with_value_0_and_no_key_is_used_twice():
    states = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (NUM_GAMES,)), position(GAME, [0] * 6)
    )
    with jax.debug_key_reuse(True):  # the reuse of a key raises an error
        choose = jax.jit(RandomPlayer(GAME).choose)
        choice = jax.device_get(choose(jax.random.key(0), states))
    counts = np.bincount(choice.action, minlength=7)
    assert counts[0] == 0
    # Six standard deviations of a binomial count.
    expected = NUM_GAMES / 6
    np.testing.assert_allclose(counts[1:], expected, atol=6 * np.sqrt(expected * 5 / 6))
    np.testing.assert_allclose(choice.policy[0], [0, *[1 / 6] * 6], rtol=1e-6)
    np.testing.assert_array_equal(choice.value, 0)
