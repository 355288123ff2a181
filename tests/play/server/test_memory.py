import dataclasses

import pytest

from azjax.play.server.memory import Cache, TreeBudget


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
    cache = Cache(total)
    for number in range(1, 4):  # `last_used` is the order of use
        for name, item in items.items():
            if item.last_used == number:
                cache[name] = item
                cache.touch(item)
    assert cache.make_room(items[kept]) == has_room
    assert sorted(cache) == [*left]
    assert all(item.bytes == 4 for item in items.values() if item.is_busy)


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
