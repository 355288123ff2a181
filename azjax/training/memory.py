"""Device memory of a run, computed before anything is compiled or written."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from azjax.arena import GRADED_AT_ONCE, shipped
from azjax.games import Game
from azjax.games.core import initial_states
from azjax.networks import CustomModules, Network, Variables
from azjax.players.batches import Division
from azjax.players.model import SearchState, num_edges, to_search
from azjax.search import search_bytes, tree_bytes
from azjax.training.alphazero import TrainState
from azjax.training.config import TrainConfig
from azjax.training.learner import Loss, make_loss, update_bytes
from azjax.training.replay import make_index
from azjax.training.targets import lambda_target

Stage = Literal["self-play", "updates", "evaluation"]

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def available_bytes() -> int | None:
    """Returns the bytes that the first device can allocate; None if unknown.

    For a CPU: the machine's memory, or the limit of the process's control group.
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


class MemoryItem(NamedTuple):
    """Memory that a run needs for one purpose.

    name: the purpose.
    size: approximate bytes.
    stage: when it is needed; None: always.
    settings: settings that lower it.
    """

    name: str
    size: int
    stage: Stage | None
    settings: tuple[str, ...]


def required_memory(
    config: TrainConfig,
    game: Game,
    network: Network,
    variables: Variables,
    init: Callable[[], Any],
    *,
    num_devices: int = 1,
    is_cpu: bool | None = None,
    modules: CustomModules | None = None,
    loss: Loss | None = None,
) -> list[MemoryItem]:
    """Returns the memory that a run needs on each device; allocates nothing.

    `init` returns the `TrainState` and is only traced. `num_devices` are those of the
    lanes, which share the memory of a CPU; `is_cpu` is by default as for the available
    devices. `modules` and `loss` are custom ones.
    """
    auxiliary = (modules or CustomModules()).auxiliary
    platform = jax.local_devices()[0].platform
    is_cpu = platform == "cpu" if is_cpu is None else is_cpu
    # The devices of a CPU share its memory, but each has its copy of the network.
    replicas, num_devices = (num_devices, 1) if is_cpu else (1, num_devices)
    # A CPU keeps the arrays of a checkpoint while they are written.
    copies, saved = (2, " (with the copy being saved)") if is_cpu else (1, "")
    state: TrainState = jax.eval_shape(init)
    replay_bytes, stored = tree_bytes(state.replay), state.replay.chunk
    entries = () if stored.policy.action is None else ("replay.policy_entries",)
    zero = jax.ShapeDtypeStruct((), jnp.int32)
    index_of = functools.partial(
        make_index, value_target=lambda_target(1.0, 1), finds_ends=bool(auxiliary)
    )
    of_lanes = jax.vmap(index_of, (0, None, None))
    _, indices, _ = jax.eval_shape(of_lanes, state.replay, zero, zero)
    # The values of actions are in it as well, in the shape of the probabilities.
    trajectory = tree_bytes((stored, stored.policy.probability)) // config.replay_chunks
    updates = update_bytes(
        game,
        network,
        variables,
        loss or make_loss(config.learner, modules),
        batch_size=config.learner.batch_size // num_devices,
        auxiliary=auxiliary,
    )
    items = [
        MemoryItem(
            f"the replay{saved}",
            copies * replay_bytes // num_devices,
            None,
            ("replay.capacity", *entries),
        ),
        MemoryItem(
            f"the network and its optimizer{saved}",
            (copies - 1 + replicas) * (tree_bytes(state) - replay_bytes),
            None,
            ("network.trunk.num_blocks",),
        ),
        MemoryItem(
            "the replay index",
            tree_bytes((indices, state.replay.was_eligible)) // num_devices,
            "updates",
            ("replay.capacity",),
        ),
        MemoryItem(
            "the trajectory of a chunk",
            trajectory // num_devices,
            "self-play",
            ("self_play.num_games", "self_play.moves_per_chunk"),
        ),
        MemoryItem(
            "the batch and its gradient",
            updates,
            "updates",
            ("learner.batch_size", "network.trunk.num_blocks"),
        ),
    ]

    def bytes_of_search(num_games: int, num_simulations: int) -> int:
        def states() -> SearchState:
            return to_search(game, initial_states(game, num_games))

        return search_bytes(
            config.search,
            jax.eval_shape(states),
            num_edges(game),
            num_simulations,
            max_depth=game.max_moves,
            has_chance=game.num_outcomes > 0,
        )

    if config.played_slots:
        games = config.played_slots // num_devices
        items.append(
            MemoryItem(
                "the search of self-play",
                bytes_of_search(games, config.self_play.longest_search),
                "self-play",
                (
                    "self_play.num_games",
                    "self_play.num_simulations",
                    "search.tree_reuse_nodes",
                ),
            )
        )
    if shipped(game) is not None:  # without solved positions nothing is searched
        # Exact lanes: one device evaluates.
        evaluating = 1 if config.exact_lanes else num_devices
        games = Division(config.num_lanes).padded(GRADED_AT_ONCE) // evaluating
        items.append(
            MemoryItem(
                "the search of evaluations",
                bytes_of_search(games, config.evaluation.num_simulations),
                "evaluation",
                ("evaluation.num_simulations", "search.tree_reuse_nodes"),
            )
        )
    return items


def needed_at_once(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Returns the items of the stage that needs most memory, the largest first."""
    stages = [
        [item for item in items if item.stage in (None, stage)]
        for stage in {item.stage for item in items}
    ]
    most = max(stages, key=lambda stage: sum(item.size for item in stage))
    return sorted(most, key=lambda item: -item.size)


def check_fits(
    config: TrainConfig, items: Sequence[MemoryItem], available: int | None
) -> None:
    """Raises a ValueError if what `required_memory` returned is more than the available
    bytes of a device, if these are known."""
    needed = sum(item.size for item in needed_at_once(items))
    if available is not None and needed > available:
        raise ValueError(
            f"this run needs about {_gigabytes(needed)} of memory, and the device "
            f"has {_gigabytes(available)}: {advice(config, items)}"
        )


@contextlib.contextmanager
def memory_errors(config: TrainConfig, items: Sequence[MemoryItem]) -> Iterator[None]:
    """A context that turns out-of-memory errors into a ValueError with advice."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        is_memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
        if not is_memory:
            raise
        raise ValueError(
            "the device ran out of memory; start a new run in another directory and "
            f"{advice(config, items)}"
        ) from error


def advice(config: TrainConfig, items: Sequence[MemoryItem]) -> str:
    """Returns which settings to lower, for the largest items first.

    Omits settings at their minimum, and items below 1% of the total.
    """
    most = needed_at_once(items)
    total = sum(item.size for item in most)
    least, _ = config.least_replay()
    # The value and the minimum of each setting that lowers the memory needed.
    settings = {
        "replay.capacity": (config.replay.capacity, least["capacity"]),
        "replay.policy_entries": (config.replay.policy_entries, 1),
        "learner.batch_size": (config.learner.batch_size, 1),
        "self_play.num_games": (config.self_play.num_games, 1),
        "self_play.moves_per_chunk": (config.self_play.moves_per_chunk, 2),
        "self_play.num_simulations": (max(config.self_play.num_simulations), 1),
        "search.tree_reuse_nodes": (config.search.tree_reuse_nodes, 0),
        "evaluation.num_simulations": (config.evaluation.num_simulations, 1),
    }
    num_blocks = getattr(config.network.trunk, "num_blocks", None)
    if num_blocks is not None:
        settings["network.trunk.num_blocks"] = (num_blocks, 0)
    advice, named = [], set()
    for item in most:
        lower = [
            f"{name} ({settings[name][0]})"
            for name in item.settings
            if name in settings
            and name not in named
            and settings[name][0] > settings[name][1]
        ]
        named.update(item.settings)
        if lower and item.size >= total / 100:
            size = _gigabytes(item.size)
            advice.append(f"{' or '.join(lower)} for {item.name}, {size}")
    return "lower " + "; ".join(advice) if advice else "use a larger device"


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:,.2f} GiB"
