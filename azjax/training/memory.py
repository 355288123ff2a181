"""Whether a run fits into the device's memory, before anything is compiled."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games import Game
from azjax.search import search_bytes, tree_bytes
from azjax.training.config import TrainConfig

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def available_bytes() -> int | None:
    """Returns the memory of the first device, None if it does not tell.

    For a CPU that is the machine's memory, or what the process's group may use of it.
    """
    device = jax.local_devices()[0]
    statistics = device.memory_stats() or {}
    if "bytes_limit" in statistics:
        return statistics["bytes_limit"]
    if device.platform != "cpu":
        return None
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP_LIMITS:
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # no such file, or `max`
            continue
    return min(limits, default=None)


def required_bytes(
    config: TrainConfig, game: Game, init: Callable[[], Any]
) -> dict[str, int]:
    """Returns what a run needs at least, by what needs it.

    What the network's layers keep in passing comes in addition.

    Args:
        config: the run's settings.
        game: what is learnt.
        init: returns the run's state, with a field `replay`; it is not called.
    """
    state = jax.eval_shape(init)
    replay = tree_bytes(state.replay)
    games = config.self_play.games
    positions = jax.eval_shape(
        lambda: jax.vmap(lambda _: game.init())(jnp.arange(games))
    )
    return {
        "the replay": replay,
        "the search": search_bytes(
            config.search,
            positions,
            game.num_actions,
            config.self_play.longest_search(max(config.self_play.simulations)),
            max_depth=game.max_moves,
        ),
        "the rest": tree_bytes(state) - replay,
    }


def check_memory(config: TrainConfig, game: Game, init: Callable[[], Any]) -> None:
    """Refuses a run that cannot fit.

    Raises:
        ValueError: it needs more than the device has.
    """
    available = available_bytes()
    required = required_bytes(config, game, init)
    if available is None or sum(required.values()) <= available:
        return
    parts = ", ".join(f"{name} {_gigabytes(size)}" for name, size in required.items())
    raise ValueError(
        f"this run needs at least {_gigabytes(sum(required.values()))} of memory "
        f"({parts}), and the device has {_gigabytes(available)}: lower "
        f"self_play.games ({config.self_play.games}), self_play.simulations "
        f"({max(config.self_play.simulations)} at most), search.kept_nodes "
        f"({config.search.kept_nodes}) or replay.capacity ({config.replay.capacity})"
    )


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:,.2f} GiB"
