"""Limits of the memory of loaded players and rules, and of search trees."""

import dataclasses
import gc
import itertools
import threading
from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import jax

# Code size of a compiled program. XLA reports none on the CPU; the resident memory
# grew by 3 to 60 MiB for each program of a search.
PROGRAM_BYTES = 2**24


class Entry(Protocol):
    """An entry of a `Cache`, which can be loaded again.

    last_used: time of the last use, by the clock of the cache.
    """

    last_used: int

    @property
    def bytes(self) -> int:
        """Estimated size."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether the entry is in use and cannot be evicted."""
        ...

    def shrink(self) -> None:
        """Frees the parts that are not in use."""
        ...


@dataclasses.dataclass(eq=False)
class ValueEntry:
    """An entry for a value that is never busy.

    version: changes with the files from which the value was read.
    """

    value: Any
    bytes: int
    version: object = None
    last_used: int = 0
    is_busy: bool = False

    def shrink(self) -> None:
        """Does nothing."""


class Cache(dict[Hashable, Any]):
    """Entries by key, of which the least recently used are evicted where the total size
    exceeds a limit; thread-safe.

    Args:
        total: bytes for all entries.
    """

    def __init__(self, total: int):
        super().__init__()
        self._total = total
        self._lock = threading.Lock()
        self._clock = itertools.count(1)

    def touch(self, entry: Entry) -> None:
        """Notes that an entry is used now."""
        entry.last_used = next(self._clock)

    def make_room(self, kept: Entry) -> bool:
        """Evicts entries, the least recently used first, until the others fit.

        Busy entries shrink instead.

        Args:
            kept: the entry that is used now, which is never evicted.

        Returns:
            Whether the remaining entries fit, or `kept` is the only one.
        """
        self.touch(kept)
        with self._lock:
            remaining = dict(self)
            if _fits(remaining, self._total):
                return True
            for key, entry in sorted(
                remaining.items(), key=lambda item: item[1].last_used
            ):
                if entry is not kept and entry.is_busy:
                    entry.shrink()
                elif entry is not kept:
                    self.pop(key, None)
                    del remaining[key]
                if _fits(remaining, self._total):
                    break
            gc.collect()  # entries contain reference cycles
            alone = list(remaining.values()) == [kept]
            return alone or _fits(remaining, self._total)


def _fits(entries: Mapping[Hashable, Entry], total: int) -> bool:
    return sum(entry.bytes for entry in entries.values()) <= total


class TreeBudget:
    """Limits the device memory of all search trees together.

    Args:
        total: bytes for all trees.
    """

    def __init__(self, total: int):
        self._total = total
        self._reserved: dict[object, int] = {}
        self._lock = threading.Lock()

    def could_reserve(self, num_bytes: int) -> bool:
        """Returns whether `num_bytes` fit when nothing else is reserved."""
        return num_bytes <= self._total

    def reserve(self, owner: object, num_bytes: int) -> bool:
        """Replaces an owner's reservation; returns whether it succeeded.

        It always succeeds if no other owner has a reservation.
        """
        with self._lock:
            others = sum(self._reserved.values()) - self._reserved.get(owner, 0)
            if num_bytes and others and others + num_bytes > self._total:
                return False
            self._reserved[owner] = num_bytes
            return True

    def release(self, owner: object) -> None:
        """Removes an owner's reservation."""
        with self._lock:
            self._reserved.pop(owner, None)


def array_bytes(tree: Any) -> int:
    """Returns the size of the arrays of a pytree."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if hasattr(leaf, "nbytes"))
