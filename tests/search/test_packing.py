"""Packed tables; `test_mctx.py` and `test_solver.py` contain searches with them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.devices import tracing_for
from azjax.search.packing import Packing, Table

RECORDS = {
    "board": np.arange(-7, 8, dtype=np.int8).reshape(3, 5),
    "count": np.array([-1, 2**31 - 1, 0], np.int32),
    "nothing": np.zeros((3, 0), np.float32),
    "over": np.array([True, False, True]),
    "rates": np.array([[0.0, -0.0], [np.inf, np.nan], [1e-45, 1.5]], np.float32),
    "scores": np.arange(-9, 9, dtype=np.int16).reshape(3, 2, 3),
    "tail": np.arange(3, dtype=np.int16),
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


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_unpacked_records_have_the_bits_that_were_packed(platform, shape):
    packing = Packing.of(RECORDS)
    records = {
        name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in RECORDS.items()
    }

    @jax.jit
    def change(records):
        with tracing_for(platform):
            words = packing.pack(records)
            return words, packing.unpack(words)

    words, unpacked = change(records)
    # Three words of four bytes each, nine items of two bytes, six of one byte.
    assert words.shape == (*shape, packing.num_words) == (*shape, 3 + 5 + 2)
    assert_same_bits(unpacked, records)


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_a_table_replaces_records_and_ignores_the_index_after_its_end(platform):
    @jax.jit
    def change():
        with tracing_for(platform):
            table = Table.of(Pair(jnp.zeros(3, jnp.int8), jnp.ones((3, 2))))
        new = Pair(jnp.array([5, 6], jnp.int8), jnp.full((2, 2), 7.0))
        table = table.set(jnp.array([1, 3]), new)
        table = table.update(jnp.array([3, 2]), first=jnp.array([8, 9], jnp.int8))
        return table, table.all(), table[jnp.array([1, 0])]

    table, records, chosen = change()
    assert (table.is_packed, table.size) == (platform != "cpu", 3)
    assert records.first.tolist() == [0, 5, 9]
    assert chosen.second.tolist() == [[7, 7], [1, 1]]
