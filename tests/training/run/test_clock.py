from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import pytest

from azjax.training.run import clock

COMPILE = "/jax/core/compile/backend_compile_duration"


@pytest.mark.parametrize(
    ("spans", "compiling"),
    [
        ([(1, 3), (4, 8)], 6),
        ([(2, 3), (5, 6), (1, 8)], 7),  # the last one includes the others
        ([(1, 4), (3, 8)], 7),
        ([(-5, 8)], 8),  # began before the run
    ],
)
def test_what_overlaps_counts_once(monkeypatch, spans, compiling):
    present = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(clock, "time", present)
    compilation = clock.Compilation()
    for first, last in spans:
        present.monotonic = lambda last=last: last
        for event in (COMPILE, "/jax/compilation_cache/cache_retrieval_time_sec"):
            compilation.add(event, last - first, fun_name="f")
    assert compilation.seconds == compiling


def test_the_clock_stands_still_while_jax_compiles():
    start = clock.now()
    compiled = jax.jit(lambda number: number - 1)
    compiled(3)
    after = clock.now()
    assert after.since(start).compiling > 0
    compiled(4)
    assert clock.now().compiling == after.compiling


def test_a_compilation_in_another_thread_counts_only_while_a_run_waits_for_it():
    start = clock.now()
    with ThreadPoolExecutor(1) as pool:
        compiling = pool.submit(jax.jit(lambda number: number - 2), 3)
    assert clock.now().compiling == start.compiling
    with clock.stopped():
        compiling.result()
    assert clock.now().compiling > start.compiling
