"""A cache of players, rules and other values, limited in its total size."""

import collections
import dataclasses
import gc
import threading
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import jax

# Code size of a compiled program. XLA reports none on the CPU; the resident memory
# grew by 3 to 60 MiB for each program of a search.
PROGRAM_BYTES = 2**24


class Entry(Protocol):
    """An entry of a `Cache`, which can be loaded again."""

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
    """An entry for a value that is never busy."""

    value: Any
    bytes: int
    is_busy: bool = False

    def shrink(self) -> None:
        """Does nothing."""


E = TypeVar("E", bound=Entry)


class Cache:
    """Entries by key, of which the least recently used are evicted where the total size
    exceeds a limit; thread-safe.

    Args:
        total: bytes for all entries.
    """

    def __init__(self, total: int):
        self._total = total
        # Versions and entries, the least recently used first.
        self._kept: collections.OrderedDict[Hashable, tuple[object, Any]] = (
            collections.OrderedDict()
        )
        self._lock = threading.Lock()
        self._locks: dict[Hashable, threading.Lock] = {}

    def entries(self) -> list[Any]:
        """Returns all entries."""
        return [entry for _, entry in list(self._kept.values())]

    def get(self, key: Hashable, version: object = None) -> Any:
        """Returns an entry, None without one of this version; does not block."""
        kept_version, entry = self._kept.get(key, (None, None))
        return entry if kept_version == version else None

    def load(
        self, key: Hashable, make: Callable[[Any], E], version: object = None
    ) -> E:
        """Returns an entry, makes it unless it is there in this version, and evicts
        others where the total size exceeds the limit.

        Concurrent calls with the same key wait for each other.

        Args:
            key: of the entry.
            make: called with the entry of another version, or None.
            version: changes with the files from which the entry is made.
        """
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            entry = self.get(key, version)
            if entry is None:
                _, other = self._kept.get(key, (None, None))
                entry = make(other)
                with self._lock:
                    self._kept[key] = version, entry
            self.make_room(entry)
            return entry

    def make_room(self, used: Entry) -> bool:
        """Evicts entries, the least recently used first, until the others fit.

        Busy entries shrink instead.

        Args:
            used: the entry that is used now, which is never evicted.

        Returns:
            Whether the remaining entries fit, or `used` is the only one.
        """
        with self._lock:
            for key, (_, entry) in list(self._kept.items()):
                if entry is used:
                    self._kept.move_to_end(key)
            if self._fits():
                return True
            for key, (_, entry) in list(self._kept.items()):
                if entry is not used and entry.is_busy:
                    entry.shrink()
                elif entry is not used:
                    del self._kept[key]
                if self._fits():
                    break
            gc.collect()  # entries contain reference cycles
            return self._fits() or self.entries() == [used]

    def _fits(self) -> bool:
        return sum(entry.bytes for entry in self.entries()) <= self._total


def array_bytes(tree: Any) -> int:
    """Returns the size of the arrays of a pytree."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if hasattr(leaf, "nbytes"))
