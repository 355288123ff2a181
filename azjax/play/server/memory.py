"""Memory budgets: for loaded players and rules, and for search trees."""

import dataclasses
import gc
import threading
from collections.abc import Iterable, MutableMapping
from typing import Any, Protocol

import jax

# Code size of a compiled program. XLA reports none on the CPU; the resident memory
# grew by 3 to 60 MiB for each program of a search.
PROGRAM_BYTES = 2**24


class Evictable(Protocol):
    """A cache entry that can be loaded again.

    last_used: time of the last use, by the clock of the `MemoryBudget`.
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
class CacheEntry:
    """An `Evictable` value.

    version: changes with the files from which the value was read.
    """

    value: Any
    bytes: int
    version: object = None
    last_used: int = 0
    is_busy: bool = False

    def shrink(self) -> None:
        """Does nothing: the entry is never busy."""


class MemoryBudget:
    """Evicts the least recently used entries of caches that exceed a total size.

    Args:
        total: bytes for all entries.
    """

    def __init__(self, total: int):
        self._total = total
        self._lock = threading.Lock()
        self._clock = 0

    def now(self) -> int:
        """Returns a number greater than all earlier ones."""
        with self._lock:
            self._clock += 1
            return self._clock

    def make_room(self, kept: Evictable, *caches: MutableMapping[Any, Any]) -> bool:
        """Evicts entries, the least recently used first, until the others fit.

        Busy entries shrink instead. `kept` is never evicted.

        Args:
            kept: the entry that is needed now.
            *caches: all entries; evicted ones are removed.

        Returns:
            Whether the remaining entries fit, or `kept` is the only one.
        """
        with self._lock:
            entries = [
                (cache, key, entry)
                for cache in caches
                for key, entry in list(cache.items())
            ]
            if self._fits(entry for *_, entry in entries):
                return True
            entries.sort(key=lambda item: item[2].last_used)
            remaining = [entry for *_, entry in entries]
            for cache, key, entry in entries:
                if entry is not kept:
                    if entry.is_busy:
                        entry.shrink()
                    else:
                        cache.pop(key, None)
                        remaining.remove(entry)
                if self._fits(remaining):
                    break
            gc.collect()  # entries contain reference cycles
            return self._fits(remaining) or remaining == [kept]

    def _fits(self, entries: Iterable[Evictable]) -> bool:
        return sum(entry.bytes for entry in entries) <= self._total


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
