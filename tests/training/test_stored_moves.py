import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.data import Rows
from azjax.training.stored_moves import _policies
from azjax.training.stored_policy import expand_policy, store_policy


@pytest.mark.parametrize(("num_actions", "entries"), [(9, 4), (60, 4), (5000, 32)])
def test_policies_are_those_that_self_play_stores(num_actions, entries):
    key = jax.random.key(num_actions)
    logits = 3 * jax.random.normal(key, (50, num_actions))
    policy = np.array(jax.nn.softmax(logits))
    policy[policy < np.quantile(policy, 0.5)] = 0
    policy[::7] = 0  # fast searches
    row, action = np.nonzero(policy)
    rows: dict[str, np.ndarray] = dict.fromkeys(Rows._fields, np.zeros(50))
    rows["policy_counts"] = np.bincount(row, minlength=50)
    rows |= {"policy_actions": action, "policy_probabilities": policy[row, action]}
    found = _policies(Rows(**rows), num_actions, entries)
    expected, _ = store_policy(jnp.asarray(policy), entries)
    for made in (found, expected):
        if made.action is not None:
            assert all(len(set(of_row)) == entries for of_row in np.array(made.action))
    dense, expected_dense = (
        expand_policy(jax.tree.map(jnp.asarray, made), num_actions)
        for made in (found, expected)
    )
    np.testing.assert_allclose(dense, expected_dense, atol=1e-3)
