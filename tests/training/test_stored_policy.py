import functools

import jax
import numpy as np
import pytest

from azjax.training.stored_policy import (
    expand_policy,
    is_sparse,
    listed_entries,
    store_policy,
    store_values,
)

store = jax.jit(store_policy, static_argnums=1)
values_of = jax.jit(store_values)


def policies(num_actions, num_legal, count=5):
    """Returns random policies over the last `num_legal` actions, `[count, A]`."""
    policy = np.exp(3 * np.random.default_rng(0).normal(size=(count, num_actions)))
    policy[:, : num_actions - num_legal] = 0
    return (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32)


@functools.partial(jax.jit, static_argnums=1)
def stored_and_expanded(policy, entries):
    """Returns the stored policies, expanded again, and the dropped probability."""
    stored, dropped = store_policy(policy, entries)
    return expand_policy(stored, policy.shape[1]), dropped


def test_the_largest_entries_are_stored_and_renormalized():
    policy = policies(300, 100)
    expanded, dropped = jax.device_get(stored_and_expanded(policy, 10))
    for row, found, lost in zip(policy, expanded, dropped, strict=True):
        largest = np.argsort(-row)[:10]
        wanted = np.zeros(300)
        wanted[largest] = row[largest] / row[largest].sum()
        np.testing.assert_allclose(found, wanted, atol=5e-4)
        assert lost == pytest.approx(1 - row[largest].sum(), abs=1e-5)


def test_a_policy_with_few_entries_loses_no_mass():
    # The last one has no target, and stays all zero.
    policy = policies(4672, 30)
    policy[-1] = 0
    expanded, dropped = jax.device_get(stored_and_expanded(policy, 64))
    np.testing.assert_allclose(expanded, policy, atol=5e-4)
    np.testing.assert_allclose(dropped, 0, atol=1e-6)
    assert not expanded[-1].any()
    assert dropped[-1] == 0


def test_all_entries_are_stored_if_that_takes_no_more_memory():
    # An entry takes 3 bytes with its action, and 2 without it.
    sparse = [is_sparse(num_actions, 64) for num_actions in (7, 64, 82, 96, 97)]
    assert sparse == [False] * 4 + [True]
    policy = policies(82, 82)
    assert store(policy, 64)[0].action is None
    expanded, dropped = stored_and_expanded(policy, 64)
    np.testing.assert_allclose(expanded, policy, atol=5e-4)
    np.testing.assert_array_equal(dropped, 0)


@pytest.mark.parametrize(
    ("num_actions", "dtype", "size"),
    [(256, "uint8", 12), (257, "uint16", 16), (65_537, "uint32", 24)],
)
def test_actions_have_the_smallest_type_and_probabilities_two_bytes(
    num_actions, dtype, size
):
    policy = jax.ShapeDtypeStruct((1, num_actions), np.float32)
    stored, _ = jax.eval_shape(lambda policy: store_policy(policy, 4), policy)
    assert stored.action is not None
    assert stored.action.dtype == dtype
    assert sum(leaf.size * leaf.dtype.itemsize for leaf in stored) == size


def test_values_are_rounded_to_1_1024():
    qvalues = np.linspace(-1, 1, 999, dtype=np.float32)[None]
    dense, _ = store(np.full((1, 999), 1 / 999, np.float32), 999)
    values = np.asarray(values_of(dense, qvalues, np.ones((1, 999), bool)), float)
    np.testing.assert_allclose(values, qvalues, atol=1 / 2048)
    np.testing.assert_array_equal(values * 1024, np.round(values * 1024))


@pytest.mark.parametrize("entries", [2, 6])  # sparse, dense
def test_entries_are_listed_policy_by_policy(entries):
    policy = np.zeros((3, 9), np.float32)
    policy[0, [7, 2]] = 0.75, 0.25
    policy[2, 4] = 1
    stored = jax.device_get(store(policy, entries)[0])
    assert (stored.action is None) == (entries == 6)
    qvalues = np.arange(27, dtype=np.float32).reshape(3, 9) / 32
    is_visited = np.arange(27).reshape(3, 9) % 9 != 2
    values = np.asarray(values_of(stored, qvalues, is_visited))
    assert values.shape == stored.probability.shape
    entries = listed_entries(stored, values)
    assert entries.counts.tolist() == [2, 0, 1]
    listed = zip(*(part.tolist() for part in entries[1:]), strict=True)
    assert {action: rest for action, *rest in listed} == {
        7: [0.75, 7 / 32],
        2: [0.25, pytest.approx(np.nan, nan_ok=True)],
        4: [1, 22 / 32],
    }
