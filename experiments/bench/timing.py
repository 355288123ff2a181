"""Timing of alternating programs, for the benchmarks."""

import time
from collections.abc import Callable


def time_in_turns(
    runs: dict[str, Callable[[], object]], repeats: int
) -> dict[str, list[float]]:
    """Returns the seconds of each run.

    The programs alternate after a warm-up, so that other load slows all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds
