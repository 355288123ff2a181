"""Checksums of checkpoints, and the causes of a failed restore."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from azjax.training.run_directory import system_error_number

# Beginnings of TensorStore's messages for a truncated file or a wrong checksum.
_DAMAGE_TEXTS = ("DATA_LOSS: ", "OUT_OF_RANGE: ", "Error decoding ")


class DamageError(Exception):
    """A checkpoint whose content differs from what was saved."""


def damage(error: BaseException) -> str | None:
    """Returns the damage of a checkpoint's content that made a restore fail; None for
    every other cause, which may be temporary."""
    causes = causes_of(error)
    if any(isinstance(cause, MemoryError | OSError) for cause in causes):
        return None
    contents = (DamageError, json.JSONDecodeError, UnicodeDecodeError)
    for cause in causes:
        is_damage = isinstance(cause, contents) or any(
            text in str(cause) for text in _DAMAGE_TEXTS
        )
        if is_damage and not system_error_number(cause):
            return first_line(cause)
    return None


def causes_of(error: BaseException) -> list[BaseException]:
    """Returns an exception and its chain of causes, the root cause last."""
    causes, cause = [], error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def digest(state: Any) -> int:
    """Returns a CRC-32 checksum of all arrays in a pytree, with shapes and dtypes.

    It does not depend on the sharding, which may divide the first axis only.
    """
    value = 0
    for array in jax.tree.leaves(state):
        is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
        leaf = jax.random.key_data(array) if is_key else array
        value = zlib.crc32(f"{leaf.shape}{leaf.dtype}".encode(), value)
        value = zlib.crc32(_row_sums(leaf).tobytes(), value)
    return value


def _row_sums(leaf: Any) -> np.ndarray:
    """Returns `[L, bytes]` uint8: a checksum of each row along the first axis, or the
    row itself if it is one number."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        if leaf.is_fully_replicated:
            return _row_sums(leaf.addressable_data(0))
        shards = leaf.addressable_shards
        parts = [_row_sums(shard.data) for shard in shards]
        sums = np.zeros((len(leaf), *parts[0].shape[1:]), np.uint8)
        for shard, part in zip(shards, parts, strict=True):
            sums[shard.index[0]] = part
        # Each row is nonzero in one process only.
        return multihost_utils.process_allgather(sums).max(axis=0)
    array = np.atleast_1d(np.asarray(leaf))
    if array.ndim == 1:
        return array.view(np.uint8).reshape(len(array), -1)
    sums = np.array([zlib.crc32(row.tobytes()) for row in array], np.uint32)
    return sums.view(np.uint8).reshape(len(array), -1)


def structure(state: Any) -> int:
    """Returns a CRC-32 checksum of the names, shapes and dtypes of all arrays."""
    leaves = [
        (jax.tree_util.keystr(path), leaf.shape, str(leaf.dtype))
        for path, leaf in jax.tree.leaves_with_path(state)
    ]
    return zlib.crc32(repr(leaves).encode())


def json_digest(values: Mapping[str, Any]) -> int:
    """Returns a CRC-32 checksum of JSON values."""
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())
