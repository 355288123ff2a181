"""Whether a run fits into the device's memory, before anything is compiled."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from azjax.arena import GRADED_AT_ONCE, shipped
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

    def bytes_of_search(num_games: int, num_simulations: int) -> int:
        positions = jax.eval_shape(
            lambda: jax.vmap(lambda _: game.init())(jnp.arange(num_games))
        )
        return search_bytes(
            config.search,
            positions,
            game.num_actions,
            num_simulations,
            max_depth=game.max_moves,
        )

    simulations = config.self_play.longest_search(max(config.self_play.simulations))
    required = {
        "the replay": replay,
        "the search of self-play": bytes_of_search(config.self_play.games, simulations),
        "the rest": tree_bytes(state) - replay,
    }
    if shipped(game) is not None:  # else nothing is searched in evaluations
        required["the search of evaluations"] = bytes_of_search(
            GRADED_AT_ONCE, config.evaluation.simulations
        )
    return required


def check_memory(config: TrainConfig, game: Game, init: Callable[[], Any]) -> None:
    """Refuses a run that cannot fit.

    Raises:
        ValueError: it needs more than the device has.
    """
    available = available_bytes()
    required = required_bytes(config, game, init)
    # The two searches do not run at the same time.
    searches = [size for name, size in required.items() if "search" in name]
    needed = sum(required.values()) - sum(searches) + max(searches)
    if available is None or needed <= available:
        return
    parts = ", ".join(f"{name} {_gigabytes(size)}" for name, size in required.items())
    raise ValueError(
        f"this run needs at least {_gigabytes(needed)} of memory "
        f"({parts}), and the device has {_gigabytes(available)}: lower "
        f"self_play.games ({config.self_play.games}), self_play.simulations "
        f"({max(config.self_play.simulations)} at most), evaluation.simulations "
        f"({config.evaluation.simulations}), search.kept_nodes "
        f"({config.search.kept_nodes}), search.leaves_per_step "
        f"({config.search.leaves_per_step}) or replay.capacity "
        f"({config.replay.capacity})"
    )


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:,.2f} GiB"
