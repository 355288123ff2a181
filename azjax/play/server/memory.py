"""How much loaded players take, and which of them go when it is too much."""

import gc
import threading
from collections.abc import Iterable, MutableMapping
from typing import Any, Protocol, TypeVar

import jax

# Of the code of a compiled program. XLA reports none on the CPU; the resident memory
# grew by 3 to 60 MiB for each program of a search.
PROGRAM_BYTES = 2**24

K = TypeVar("K")


class Item(Protocol):
    """Something that is loaded and can be loaded again.

    used: a larger number the later it was used.
    """

    used: int

    @property
    def bytes(self) -> int:
        """About what it takes."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether it is at work."""
        ...

    def shrink(self) -> None:
        """Lets go of all parts that are not at work."""
        ...


class Memory:
    """Lets go of what was not used for longest when all of it takes too much.

    Args:
        total: bytes that all may take.
    """

    def __init__(self, total: int):
        self._total = total
        self._lock = threading.Lock()
        self._clock = 0

    def now(self) -> int:
        """Returns a larger number each time."""
        with self._lock:
            self._clock += 1
            return self._clock

    def make_room(self, kept: Item, *loaded: MutableMapping[Any, Any]) -> bool:
        """Drops items, the least recently used first, until the others fit.

        An item that is at work stays but shrinks. `kept` stays in any case.

        Args:
            kept: what is needed now.
            *loaded: all items, from which those that go are taken out.

        Returns:
            Whether what is left fits, or is `kept` alone.
        """
        with self._lock:
            entries = [
                (items, key, item)
                for items in loaded
                for key, item in list(items.items())
            ]
            if self._fits(item for *_, item in entries):
                return True
            entries.sort(key=lambda entry: entry[2].used)
            left = [item for *_, item in entries]
            for items, key, item in entries:
                if item is not kept:
                    if item.is_busy:
                        item.shrink()
                    else:
                        items.pop(key, None)
                        left.remove(item)
                if self._fits(left):
                    break
            gc.collect()  # items hold themselves in cycles
            return self._fits(left) or left == [kept]

    def _fits(self, items: Iterable[Item]) -> bool:
        return sum(item.bytes for item in items) <= self._total


def array_bytes(tree: Any) -> int:
    """Returns what the arrays of a pytree take."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree) if hasattr(leaf, "nbytes"))
