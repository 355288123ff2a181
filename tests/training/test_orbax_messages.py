import gc
import logging
import sys
import time

import pytest

from azjax.training.orbax_messages import suppress_orbax_messages


def wait_for_the_end_of_suppression():
    while logging.getLogger("absl").filters:
        time.sleep(0.01)


def test_what_is_released_soon_after_a_failure_prints_nothing(monkeypatch):
    wait_for_the_end_of_suppression()
    gc.freeze()  # what other tests left takes the garbage collector long
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    code = compile("async def write(): pass", "/orbax/serialization.py", "exec")
    exec(code, functions := {})
    held = [functions["write"]()]  # as by a thread of Orbax
    held.append(held)  # only the garbage collector can release it
    with pytest.raises(OSError, match="full"), suppress_orbax_messages():
        raise OSError("full")
    del held
    wait_for_the_end_of_suppression()
    gc.collect()
    assert shown == []
