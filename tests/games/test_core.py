import chex
import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import core


def test_rewards_sum_to_zero_and_a_draw_has_no_sign():
    for outcome in 1, 0, -1:
        rewards = jax.jit(core.zero_sum)(jnp.int8(outcome))
        assert rewards.tolist() == [outcome, -outcome]
        assert outcome != 0 or not np.signbit(rewards).any()


def test_select_takes_every_leaf_from_one_side():
    on_true = {"a": jnp.zeros(2), "b": (jnp.int8(1),)}
    on_false = {"a": jnp.ones(2), "b": (jnp.int8(2),)}
    for predicate in True, False:
        chosen = core.select(jnp.bool(predicate), on_true, on_false)
        chex.assert_trees_all_equal(chosen, on_true if predicate else on_false)


def test_the_identity_returns_its_input():
    identity = core.identity(5)
    np.testing.assert_array_equal(identity.actions, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(identity.observation(jnp.arange(3)), [0, 1, 2])
