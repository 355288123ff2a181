from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.devices import tracing_for
from azjax.search import GumbelConfig, gumbel_muzero_policy
from azjax.search.packing import Packing, Table

RECORDS = {
    "board": np.arange(-7, 8, dtype=np.int8).reshape(3, 5),
    "count": np.array([-1, 2**31 - 1, 0], np.int32),
    "nothing": np.zeros((3, 0), np.float32),
    "over": np.array([True, False, True]),
    "rates": np.array([[0.0, -0.0], [np.inf, np.nan], [1e-45, 1.5]], np.float32),
    "scores": np.arange(-9, 9, dtype=np.int16).reshape(3, 2, 3),
    "logits": jnp.arange(6, dtype=jnp.bfloat16).reshape(3, 2),
}


class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array


def assert_same_bits(found, expected):
    for ours, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_unpacked_records_have_the_bits_that_were_packed():
    packing = Packing.of(RECORDS)
    words = packing.pack(RECORDS)
    # Three words of four bytes each, eight items of two bytes, six of one byte.
    assert words.shape == (3, packing.num_words) == (3, 3 + 4 + 2)
    assert_same_bits(packing.unpack(words), RECORDS)


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_a_table_replaces_records_and_ignores_the_index_after_its_end(platform):
    with tracing_for(platform):
        table = Table.of(Pair(jnp.zeros(3, jnp.int8), jnp.ones((3, 2))))
    new = Pair(jnp.array([5, 6], jnp.int8), jnp.full((2, 2), 7.0))
    table = table.set(jnp.array([1, 3]), new)
    table = table.update(jnp.array([3, 2]), first=jnp.array([8, 9], jnp.int8))
    assert (table.is_packed, table.size) == (platform != "cpu", 3)
    assert table.all().first.tolist() == [0, 5, 9]
    assert table[jnp.array([1, 0])].second.tolist() == [[7, 7], [1, 1]]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_solver": True},
    ],
)
def test_a_search_with_packed_tables_has_the_same_result(tic_tac_toe, settings):
    states = tic_tac_toe.positions("a1 b1 c3", "b2", "a1 b1 a2 b2")

    def search(states):
        legal = jax.vmap(tic_tac_toe.game.legal_action_mask)(states)
        return GumbelConfig(**settings).policy(explores=True)(
            2.0,
            jax.random.key(0),
            tic_tac_toe.root(2.0, states),
            tic_tac_toe.model,
            12,
            invalid_actions=~legal,
            max_depth=4,
        )

    def packed_search(states):
        with tracing_for("tpu"):
            return search(states)

    found, expected = jax.jit(packed_search)(states), jax.jit(search)(states)
    assert found.search_tree.node_visits.sum() > 3 * 12
    # Equal up to rounding, because the programs differ.
    chex.assert_trees_all_close(found, expected, rtol=1e-6)


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_a_selection_reads_the_newest_values_of_the_children(tic_tac_toe, platform):
    states = tic_tac_toe.positions("a1 b1 c3", "b2")

    def visited_qvalues(tree, node_index):
        visited = tree.children_visits[node_index] > 0
        return jnp.where(visited, tree.qvalues(node_index), 0.0)

    def from_the_children(tree, node_index):
        discounted = tree.children_discounts * tree.children_values
        return (tree.children_rewards + discounted)[node_index]

    def search(states, qtransform):
        legal = jax.vmap(tic_tac_toe.game.legal_action_mask)(states)
        with tracing_for(platform):
            return gumbel_muzero_policy(
                2.0,
                jax.random.key(0),
                tic_tac_toe.root(2.0, states),
                tic_tac_toe.model,
                12,
                invalid_actions=~legal,
                qtransform=qtransform,
            ).search_tree.children_visits

    run = jax.jit(search, static_argnums=1)
    found, expected = run(states, from_the_children), run(states, visited_qvalues)
    np.testing.assert_array_equal(found, expected)
