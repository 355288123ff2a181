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


def test_the_least_recently_used_entry_is_evicted_first():
    items = {"new": Loaded(3), "old": Loaded(1), "middle": Loaded(2)}
    assert MemoryBudget(20).make_room(items["new"], items)
    assert list(items) == ["new", "middle"]


def test_the_needed_entry_stays_even_if_it_is_too_large():
    items = {"a": Loaded(1, bytes=50), "b": Loaded(2)}
    assert MemoryBudget(20).make_room(items["a"], items)
    assert list(items) == ["a"]


def test_a_busy_entry_shrinks_and_stays():
    items = {"busy": Loaded(1, is_busy=True), "idle": Loaded(2), "kept": Loaded(3)}
    assert MemoryBudget(15).make_room(items["kept"], items)
    assert list(items) == ["busy", "kept"]
    assert items["busy"].bytes == 4


def test_there_is_no_room_if_all_entries_are_busy():
    items = {name: Loaded(1, is_busy=True) for name in "abc"} | {"kept": Loaded(3)}
    assert not MemoryBudget(15).make_room(items["kept"], items)
    assert list(items) == ["a", "b", "c", "kept"]


def test_caches_share_the_budget():
    first, second = {"a": Loaded(1)}, {"b": Loaded(2), "c": Loaded(3)}
    assert MemoryBudget(20).make_room(second["c"], first, second)
    assert (list(first), list(second)) == ([], ["b", "c"])


def test_nothing_is_evicted_if_all_entries_fit():
    items = {"a": Loaded(1), "b": Loaded(2)}
    assert MemoryBudget(20).make_room(items["b"], items)
    assert len(items) == 2


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
