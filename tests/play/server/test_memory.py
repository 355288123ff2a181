import dataclasses

import jax.numpy as jnp
import pytest

from azjax.play.server.memory import Memory, array_bytes


@dataclasses.dataclass(eq=False)
class Loaded:
    used: int
    bytes: int = 10
    is_busy: bool = False

    def shrink(self):
        self.bytes = 4


def test_what_was_not_used_for_longest_goes_first():
    items = {"new": Loaded(3), "old": Loaded(1), "middle": Loaded(2)}
    assert Memory(20).make_room(items["new"], items)
    assert list(items) == ["new", "middle"]


def test_what_is_needed_now_stays_even_if_it_is_too_large():
    items = {"a": Loaded(1, bytes=50), "b": Loaded(2)}
    assert Memory(20).make_room(items["a"], items)
    assert list(items) == ["a"]


def test_what_is_at_work_stays_and_shrinks():
    items = {"busy": Loaded(1, is_busy=True), "idle": Loaded(2), "kept": Loaded(3)}
    assert Memory(15).make_room(items["kept"], items)
    assert list(items) == ["busy", "kept"]
    assert items["busy"].bytes == 4


def test_where_all_are_at_work_there_is_no_room():
    items = {name: Loaded(1, is_busy=True) for name in "abc"} | {"kept": Loaded(3)}
    assert not Memory(15).make_room(items["kept"], items)
    assert list(items) == ["a", "b", "c", "kept"]


def test_several_collections_share_the_room():
    first, second = {"a": Loaded(1)}, {"b": Loaded(2), "c": Loaded(3)}
    assert Memory(20).make_room(second["c"], first, second)
    assert (list(first), list(second)) == ([], ["b", "c"])


def test_what_fits_stays():
    items = {"a": Loaded(1), "b": Loaded(2)}
    assert Memory(20).make_room(items["b"], items)
    assert len(items) == 2


@pytest.mark.parametrize(
    ("tree", "num_bytes"), [({"a": jnp.zeros(3), "b": 7}, 12), ((), 0)]
)
def test_arrays_are_counted(tree, num_bytes):
    assert array_bytes(tree) == num_bytes
