import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import core, make
from azjax.games.host import compiled, next_state


def test_rewards_sum_to_zero_and_a_draw_has_no_sign():
    for outcome in 1, 0, -1:
        rewards = jax.jit(core.zero_sum)(jnp.int8(outcome))
        assert rewards.tolist() == [outcome, -outcome]
        assert outcome != 0 or not np.signbit(rewards).any()


@pytest.mark.parametrize("name", ["connect_four", "hex:3,swap=true", "breakthrough"])
def test_a_compiled_game_equals_the_game(name):
    game = make(name)
    fast, state = compiled(game), jax.jit(game.init)()
    assert fast == game
    assert hash(fast) == hash(game)
    action = np.asarray(fast.legal_action_mask(state)).argmax().astype(np.int32)
    after = fast.step(state, action)
    jax.tree.map(np.testing.assert_array_equal, after, next_state(game, state, action))

    def look(state, action):
        after = game.step(state, action)
        return game.legal_action_mask(state), after, game.board(after)

    expected = jax.jit(look)(state, action)
    found = fast.legal_action_mask(state), after, fast.board(after)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert "X" in fast.to_text(after)
