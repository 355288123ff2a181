import dataclasses

import pytest

from azjax.play.server.memory import Cache
from azjax.play.server.search_workers import TreeBudget


@dataclasses.dataclass(eq=False)
class Loaded:
    name: str
    bytes: int = 10
    is_busy: bool = False

    def shrink(self):
        self.bytes = 4


def busy(names):
    return [Loaded(name, is_busy=True) for name in names]


@pytest.mark.parametrize(
    ("total", "items", "has_room", "left"),
    [
        # The least recently used entry is evicted first; none if all fit.
        (20, [Loaded("a"), Loaded("b"), Loaded("c")], True, "bc"),
        (20, [Loaded("a"), Loaded("b")], True, "ab"),
        # The entry that is used stays even if it is too large.
        (20, [Loaded("a"), Loaded("b", bytes=50)], True, "b"),
        # A busy entry shrinks and stays.
        (15, [*busy("a"), Loaded("b"), Loaded("c")], True, "ac"),
        (15, [*busy("abc"), Loaded("d")], False, "abcd"),
    ],
)
def test_entries_are_evicted_until_the_others_fit(total, items, has_room, left):
    cache = Cache(total)
    for item in items:
        assert cache.load(item.name, lambda _, item=item: item) is item
    assert cache.make_room(items[-1]) == has_room
    assert [entry.name for entry in cache.entries()] == [*left]
    assert all(item.bytes == 4 for item in items if item.is_busy)


def test_a_loaded_entry_is_the_most_recently_used():
    cache = Cache(20)
    for name in "abac":
        cache.load(name, lambda _, name=name: Loaded(name))
    assert [entry.name for entry in cache.entries()] == ["a", "c"]


def test_an_entry_is_made_once_for_each_version():
    cache, made = Cache(20), []

    def make(older):
        made.append(older)
        return Loaded("a")

    first = cache.load("key", make, version=1)
    assert cache.load("key", make, version=1) is cache.get("key", 1) is first
    assert cache.get("key", 2) is cache.get("other") is None
    assert cache.load("key", make, version=2) is cache.get("key", 2) is not first
    assert made == [None, first]
    assert len(cache.entries()) == 1


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
