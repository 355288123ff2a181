import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.training.stored_policy import (
    expand_policy,
    is_sparse,
    listed_entries,
    store_policy,
    store_values,
)


def policies(num_actions, num_legal, count=5):
    """Returns random policies over the last `num_legal` actions, `[count, A]`."""
    logits = 3 * jax.random.normal(jax.random.key(0), (count, num_actions))
    legal = jnp.arange(num_actions) >= num_actions - num_legal
    return jax.nn.softmax(jnp.where(legal, logits, -jnp.inf))


def test_the_largest_entries_are_stored_and_renormalized():
    policy = policies(300, 100)
    stored, dropped = store_policy(policy, 10)
    expanded = np.asarray(expand_policy(stored, 300))
    full = np.asarray(policy, np.float64)
    for row, found, lost in zip(full, expanded, np.asarray(dropped), strict=True):
        largest = np.argsort(-row)[:10]
        wanted = np.zeros(300)
        wanted[largest] = row[largest] / row[largest].sum()
        np.testing.assert_allclose(found, wanted, atol=5e-4)
        assert lost == pytest.approx(1 - row[largest].sum(), abs=1e-5)


def test_a_policy_with_few_entries_loses_no_mass():
    policy = policies(4672, 30)
    stored, dropped = store_policy(policy, 64)
    np.testing.assert_allclose(expand_policy(stored, 4672), policy, atol=5e-4)
    np.testing.assert_allclose(dropped, 0, atol=1e-6)


def test_a_policy_without_a_target_stays_all_zero():
    stored, dropped = store_policy(jnp.zeros((3, 4672)), 64)
    np.testing.assert_array_equal(expand_policy(stored, 4672), np.zeros((3, 4672)))
    np.testing.assert_array_equal(dropped, 0)


def test_all_entries_are_stored_if_that_takes_no_more_memory():
    # An entry takes 3 bytes with its action, and 2 without it.
    assert [is_sparse(num_actions, 64) for num_actions in (7, 64, 82, 96)] == [
        False
    ] * 4
    assert is_sparse(97, 64)
    policy = policies(82, 82)
    stored, dropped = store_policy(policy, 64)
    assert stored.action is None
    np.testing.assert_allclose(expand_policy(stored, 82), policy, atol=5e-4)
    np.testing.assert_array_equal(dropped, 0)


@pytest.mark.parametrize(
    ("num_actions", "dtype"), [(256, "uint8"), (257, "uint16"), (65_537, "uint32")]
)
def test_actions_have_the_smallest_type_that_holds_them(num_actions, dtype):
    stored, _ = jax.eval_shape(
        lambda policy: store_policy(policy, 4), jnp.zeros((1, num_actions))
    )
    assert stored.action is not None
    assert stored.action.dtype == dtype


def test_a_chess_policy_takes_256_bytes():
    stored, _ = jax.eval_shape(
        lambda policy: store_policy(policy, 64), jnp.zeros((1, 4672))
    )
    assert (
        sum(leaf.size * leaf.dtype.itemsize for leaf in stored if leaf is not None)
        == 256
    )


def test_values_are_rounded_to_1_1024():
    qvalues = jnp.linspace(-1, 1, 999)[None]
    dense, _ = store_policy(jnp.full((1, 999), 1 / 999), 999)
    values = np.asarray(store_values(dense, qvalues, jnp.ones((1, 999), bool)))
    np.testing.assert_allclose(values[0], qvalues[0], atol=1 / 2048)
    np.testing.assert_array_equal(values * 1024, np.round(values * 1024))


@pytest.mark.parametrize("entries", [2, 6])  # sparse, dense
def test_entries_are_listed_policy_by_policy(entries):
    policy = np.zeros((3, 9), np.float32)
    policy[0, [7, 2]] = 0.75, 0.25
    policy[2, 4] = 1
    stored = jax.device_get(store_policy(jnp.asarray(policy), entries)[0])
    assert (stored.action is None) == (entries == 6)
    qvalues = jnp.arange(27).reshape(3, 9) / 32
    is_visited = jnp.arange(9) != 2
    values = jax.device_get(
        store_values(stored, qvalues, jnp.broadcast_to(is_visited, (3, 9)))
    )
    assert values.shape == stored.probability.shape
    entries = listed_entries(stored, values)
    assert entries.counts.tolist() == [2, 0, 1]
    found = {
        action: (probability, value)
        for action, probability, value in zip(
            *(part.tolist() for part in entries[1:]), strict=True
        )
    }
    assert found == {
        7: (0.75, 7 / 32),
        2: (0.25, pytest.approx(np.nan, nan_ok=True)),
        4: (1, 22 / 32),
    }
