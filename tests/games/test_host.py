import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games.host import compiled


@pytest.mark.parametrize("name", ["connect_four", "hex:3,swap=true", "breakthrough"])
def test_a_compiled_game_equals_the_game(name):
    game = games.make(name)
    fast, state = compiled(game), game.init()
    assert fast == game
    assert hash(fast) == hash(game)
    assert fast.to_text(state) == game.to_text(state)
    action = int(np.asarray(fast.legal_action_mask(state)).argmax())
    after = fast.step(state, jnp.int32(action))
    np.testing.assert_array_equal(
        fast.observe(after), game.observe(game.step(state, jnp.int32(action)))
    )
