import dataclasses

import jax.numpy as jnp
import pytest

from azjax.play.server.memory import MemoryBudget, TreeBudget, array_bytes


@dataclasses.dataclass(eq=False)
class Loaded:
    last_used: int
    bytes: int = 10
    is_busy: bool = False

    def shrink(self):
        self.bytes = 4


def busy(names):
    return {name: Loaded(1, is_busy=True) for name in names}


@pytest.mark.parametrize(
    ("total", "items", "kept", "has_room", "left"),
    [
        # The least recently used entry is evicted first; none if all fit.
        (20, {"a": Loaded(3), "b": Loaded(1), "c": Loaded(2)}, "a", True, "ac"),
        (20, {"a": Loaded(1), "b": Loaded(2)}, "b", True, "ab"),
        # The needed entry stays even if it is too large.
        (20, {"a": Loaded(1, bytes=50), "b": Loaded(2)}, "a", True, "a"),
        # A busy entry shrinks and stays.
        (15, {**busy("a"), "b": Loaded(2), "c": Loaded(3)}, "c", True, "ac"),
        (15, {**busy("abc"), "d": Loaded(3)}, "d", False, "abcd"),
    ],
)
def test_entries_are_evicted_until_the_others_fit(total, items, kept, has_room, left):
    assert MemoryBudget(total).make_room(items[kept], items) == has_room
    assert list(items) == [*left]
    assert all(item.bytes == 4 for item in items.values() if item.is_busy)


def test_caches_share_the_budget():
    first, second = {"a": Loaded(1)}, {"b": Loaded(2), "c": Loaded(3)}
    assert MemoryBudget(20).make_room(second["c"], first, second)
    assert (list(first), list(second)) == ([], ["b", "c"])


@pytest.mark.parametrize(
    ("tree", "num_bytes"), [({"a": jnp.zeros(3), "b": 7}, 12), ((), 0)]
)
def test_array_bytes_counts_arrays_only(tree, num_bytes):
    assert array_bytes(tree) == num_bytes


def test_reservations_beyond_the_tree_budget_fail():
    budget = TreeBudget(100)
    assert budget.reserve("first", 80)
    assert not budget.reserve("second", 40)
    assert budget.reserve("second", 20)
    assert budget.reserve("first", 60)
    assert budget.reserve("second", 40)
    budget.release("first")
    budget.release("second")
    assert budget.reserve("alone", 1000)
    assert budget.reserve("without trees", 0)
