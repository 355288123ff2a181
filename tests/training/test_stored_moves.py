import jax
import numpy as np
import pytest

from azjax.data import Rows
from azjax.training.stored_moves import _policies
from azjax.training.stored_policy import expand_policy, store_policy


@pytest.mark.parametrize(("num_actions", "entries"), [(9, 4), (60, 4), (5000, 32)])
def test_policies_are_those_that_self_play_stores(num_actions, entries):
    chance = np.random.default_rng(num_actions)
    policy = np.exp(3 * chance.normal(size=(50, num_actions)))
    policy = (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32)
    policy[policy < np.quantile(policy, 0.5)] = 0
    policy[::7] = 0  # fast searches
    row, action = np.nonzero(policy)
    rows: dict[str, np.ndarray] = dict.fromkeys(Rows._fields, np.zeros(50))
    rows["policy_counts"] = np.bincount(row, minlength=50)
    rows |= {"policy_actions": action, "policy_probabilities": policy[row, action]}

    @jax.jit
    def stored_and_expanded(found, policy):
        both = found, store_policy(policy, entries)[0]
        return both, [expand_policy(made, num_actions) for made in both]

    found = _policies(Rows(**rows), num_actions, entries)
    both, expanded = jax.device_get(stored_and_expanded(found, policy))
    for made in both:
        if made.action is not None:
            assert all(len(set(of_row)) == entries for of_row in made.action)
    np.testing.assert_allclose(*expanded, atol=1e-3)
