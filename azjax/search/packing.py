"""Tables of records, which accelerators store as rows of 32-bit words.

A GPU or TPU gathers or scatters a row of words in one operation, while a record of
several arrays takes one for each. A CPU does better with the arrays, because it reads
only those that are used. Packing is lossless.

A TPU computes with tiles of 8 x 128 numbers. Words that were read have the records in
the two minor dimensions there, because the few words or actions of a record would fill
a part of the 128 lanes.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.experimental.layout import Layout, with_layout_constraint

from azjax.devices import target_platform

WORD = jnp.dtype(jnp.int32)
# Unsigned below four bytes, so that a shift leaves no sign.
_INTEGERS = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.int32, 8: jnp.int64}


@dataclasses.dataclass(frozen=True)
class Packing:
    """How one record, a pytree of arrays, lies in a row of W words.

    Leaves of the same item size lie next to each other, those of four bytes first; each
    size begins at a new word.

    structure: of the pytree, a `PyTreeDef`.
    shapes, dtypes: of the leaves.
    """

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]

    @classmethod
    def of(cls, records: Any) -> "Packing":
        """Returns the packing of records with leaves `[R, ...]`, arrays or shapes."""
        leaves, structure = jax.tree.flatten(records)
        return cls(
            structure=structure,
            shapes=tuple(leaf.shape[1:] for leaf in leaves),
            dtypes=tuple(jnp.dtype(leaf.dtype) for leaf in leaves),
        )

    @property
    def num_words(self) -> int:
        """W."""
        return sum(_num_words(size, items) for size, items in self._sizes())

    def pack(self, records: Any) -> jax.Array:
        """Returns `[..., W]` words."""
        leaves = self.structure.flatten_up_to(records)
        leading = leaves[0].shape[: leaves[0].ndim - len(self.shapes[0])]
        parts = []
        for size, _ in self._sizes():
            # Words hold items of one size.
            items = [
                _to_integer(jnp.asarray(leaf, dtype)).reshape(*leading, -1)
                for leaf, dtype in zip(leaves, self.dtypes, strict=True)
                if dtype.itemsize == size
            ]
            parts.append(_to_words(jnp.concatenate(items, axis=-1)))
        return _words_major(jnp.concatenate(parts, axis=-1))

    def unpack(self, words: jax.Array) -> Any:
        """Returns the records in `[..., W]` words."""
        words = _words_major(words)
        leaves: list[Any] = [None] * len(self.shapes)
        first_word = 0
        for size, num_items in self._sizes():
            num_words = _num_words(size, num_items)
            # The words of one size, then from their items each leaf of that size.
            items = _from_words(words[..., first_word : first_word + num_words], size)
            first_word += num_words
            first = 0
            for number, (shape, dtype) in enumerate(
                zip(self.shapes, self.dtypes, strict=True)
            ):
                if dtype.itemsize == size:
                    after = first + math.prod(shape)
                    part = items[..., first:after].reshape(*words.shape[:-1], *shape)
                    leaves[number] = _from_integer(part, dtype)
                    first = after
        return self.structure.unflatten(leaves)

    def place(self, field: str) -> tuple[int, np.dtype]:
        """Returns the word in which a field of four bytes lies, and its dtype."""
        number = getattr(self.structure.unflatten(range(len(self.shapes))), field)
        before = zip(self.shapes[:number], self.dtypes[:number], strict=True)
        word = sum(math.prod(shape) for shape, dtype in before if dtype.itemsize == 4)
        return word, self.dtypes[number]

    def _sizes(self) -> list[tuple[int, int]]:
        """Returns the sizes of items (bytes) and how many there are of each."""
        found = {size: 0 for size in (4, 8, 2, 1)}
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            found[dtype.itemsize] += math.prod(shape)
        return [(size, items) for size, items in found.items() if items]


def _words_major(words: jax.Array) -> jax.Array:
    """Returns `[..., W]` words, in the memory of a TPU as `[W, ...]`."""
    if target_platform() != "tpu":
        return words
    order = (words.ndim - 1, *range(words.ndim - 1))
    return with_layout_constraint(words, Layout(major_to_minor=order))


def _num_words(size: int, items: int) -> int:
    return -(-size * items // WORD.itemsize)


def _to_integer(leaf: jax.Array) -> jax.Array:
    if leaf.dtype == jnp.bool:
        return leaf.astype(jnp.uint8)
    return jax.lax.bitcast_convert_type(leaf, _INTEGERS[leaf.dtype.itemsize])


def _from_integer(items: jax.Array, dtype: np.dtype) -> jax.Array:
    if dtype == jnp.bool:
        return items != 0
    return jax.lax.bitcast_convert_type(items, dtype)


def _to_words(items: jax.Array) -> jax.Array:
    """Returns `[..., W]` words with `[..., I]` integers in them."""
    size = items.dtype.itemsize
    if size >= WORD.itemsize:
        words = jax.lax.bitcast_convert_type(items, WORD)
        return words.reshape(*items.shape[:-1], -1)
    # Item `place` of each word takes the bits from `8 * size * place` on.
    per_word = WORD.itemsize // size
    num_words = _num_words(size, items.shape[-1])
    words = jnp.zeros((*items.shape[:-1], num_words), WORD)
    for place in range(min(per_word, items.shape[-1])):
        part = items[..., place::per_word].astype(WORD) << (8 * size * place)
        missing = num_words - part.shape[-1]
        words |= jnp.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, missing)])
    return words


def _from_words(words: jax.Array, size: int) -> jax.Array:
    """Returns `[..., I]` integers of `size` bytes, filler at the end included."""
    leading = words.shape[:-1]
    if size > WORD.itemsize:
        words = words.reshape(*leading, -1, size // WORD.itemsize)
    if size >= WORD.itemsize:
        items = jax.lax.bitcast_convert_type(words, _INTEGERS[size])
        return items.reshape(*leading, -1)
    shifts = jnp.arange(0, 8 * WORD.itemsize, 8 * size, dtype=WORD)
    shifts = jnp.expand_dims(shifts, range(words.ndim))
    items = (words[..., None] >> shifts).astype(_INTEGERS[size])
    return items.reshape(*leading, -1)


@struct.dataclass
class Table:
    """M records.

    data: `[M, W]` words, or the records themselves: a pytree with leaves `[M, ...]`.
    packing: how the records are packed; None: they are not.
    """

    data: Any
    packing: Packing | None = struct.field(pytree_node=False)

    @classmethod
    def of(cls, records: Any) -> "Table":
        """Returns the table of some records, leaves `[M, ...]`, packed unless the
        program is for a CPU or the records are empty."""
        packing = Packing.of(records)
        if target_platform() == "cpu" or not packing.num_words:
            return cls(data=records, packing=None)
        return cls(data=packing.pack(records), packing=packing)

    @property
    def size(self) -> int:
        """M, which is also the index at which `set` writes nothing."""
        return len(jax.tree.leaves(self.data)[0])

    @property
    def is_packed(self) -> bool:
        """Whether the records are rows of words."""
        return self.packing is not None

    def all(self) -> Any:
        """Returns all records."""
        return self.data if self.packing is None else self.packing.unpack(self.data)

    def __getitem__(self, index: jax.Array) -> Any:
        """Returns the records at `[R]` indices; indices out of range are clipped."""
        found = jax.tree.map(
            lambda leaf: leaf.at[index].get(mode="clip", wrap_negative_indices=False),
            self.data,
        )
        return found if self.packing is None else self.packing.unpack(found)

    def read(self, index: jax.Array, field: str) -> jax.Array:
        """Returns one field, a number of four bytes, of the records at `[R]` indices,
        which are `NamedTuple`s."""
        if self.packing is None:
            numbers = getattr(self.data, field)
            return numbers.at[index].get(mode="clip", wrap_negative_indices=False)
        word, dtype = self.packing.place(field)
        words = self.data.at[index, word].get(mode="clip", wrap_negative_indices=False)
        return _from_integer(words, dtype)

    def set(self, index: jax.Array, records: Any) -> "Table":
        """Returns the table with `[R]` records replaced; an index of M replaces none.

        The records' numbers are converted to the table's types.
        """
        if self.packing is not None:
            words = self.packing.pack(records)
            return Table(_scatter(self.data, index, words), self.packing)
        data = jax.tree.map(
            lambda leaf, new: _scatter(leaf, index, new), self.data, records
        )
        return Table(data, None)

    def rewrite(self, index: jax.Array, records: Any) -> "Table":
        """Returns what `set` does, for records that were made from the old ones.

        All words are computed before the first is written: a GPU's compiler would read
        the old ones in several kernels to write the new ones in place.
        """
        if self.packing is None:
            return self.set(index, records)
        words = jax.lax.optimization_barrier(self.packing.pack(records))
        return Table(_scatter(self.data, index, words), self.packing)

    def update(self, index: Any, **fields: jax.Array) -> "Table":
        """Returns the table with some fields of `[R]` records replaced, which are
        `NamedTuple`s; an index of M replaces none.

        In a table that is not packed, `(index, action)` is an index as well, for fields
        with a number for each action.
        """
        if self.packing is not None:
            return self.rewrite(index, self[index]._replace(**fields))
        written = {
            name: _scatter(getattr(self.data, name), index, new)
            for name, new in fields.items()
        }
        return Table(self.data._replace(**written), None)


def _scatter(array: jax.Array, index: Any, new: jax.Array) -> jax.Array:
    return array.at[index].set(
        jnp.asarray(new, array.dtype), mode="drop", wrap_negative_indices=False
    )
