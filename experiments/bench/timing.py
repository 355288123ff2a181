"""Timing of alternating programs, for the benchmarks."""

import time
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)  # names of runs


def time_in_turns(
    runs: dict[K, Callable[[], object]], repeats: int
) -> dict[K, list[float]]:
    """Returns the seconds of each run.

    The programs alternate after a warm-up, so that other load slows all of them.
    """
    seconds: dict[K, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds
