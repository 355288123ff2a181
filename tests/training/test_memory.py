import functools
import os

import jax
import jax.numpy as jnp
import pytest
from flax import struct
from training.tiny_runs import TINY_NETWORK
from untrained import untrained_shapes

from azjax import games
from azjax.networks import ConvTrunkConfig, DenseTrunkConfig, NetworkConfig
from azjax.search import GumbelConfig
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    train,
)
from azjax.training import memory as module
from azjax.training.memory import (
    MemoryItem,
    available_bytes,
    check_fits,
    memory_errors,
    needed_at_once,
    required_memory,
)
from azjax.training.replay import Replay, empty_replay

GIB = 2**30
GAME = games.make("tic_tac_toe")
SMALLEST = NetworkConfig(trunk=ConvTrunkConfig(num_blocks=0, channels=1))


@struct.dataclass
class State:
    replay: Replay
    weights: jax.Array


def config(directory="runs/none", games=8, **changes) -> TrainConfig:
    settings = {
        "game": "tic_tac_toe",
        "iterations": 1,
        "num_lanes": 1,
        "run_dir": str(directory),
        "network": TINY_NETWORK,
        "self_play": SelfPlayConfig(
            num_games=games, moves_per_chunk=2, num_simulations=(2, 5)
        ),
        "replay": ReplayConfig(
            capacity=12 * games, min_window=12 * games, min_positions=0
        ),
        "learner": LearnerConfig(batch_size=16),
    }
    return TrainConfig(**settings | changes)


@functools.cache
def parts_of(
    settings: TrainConfig, num_devices: int = 1, is_cpu: bool = False
) -> dict[str, MemoryItem]:
    """Returns the parts by name; the weights are made up: half a GiB."""
    network, variables = untrained_shapes(GAME, settings.network)

    def init() -> State:
        replay = empty_replay(
            GAME,
            num_chunks=settings.replay_chunks,
            moves_per_chunk=settings.self_play.moves_per_chunk,
            num_games=settings.self_play.num_games,
            policy_entries=settings.replay.policy_entries,
        )
        return State(
            replay=jax.tree.map(lambda leaf: leaf[None], replay),  # of one lane
            weights=jnp.zeros(2**27, jnp.float32),
        )

    arguments = (settings, GAME, network, variables, init)
    parts = required_memory(*arguments, num_devices=num_devices, is_cpu=is_cpu)
    return {part.name: part for part in parts}


def refusal(settings: TrainConfig, available: int) -> str:
    with pytest.raises(ValueError, match="this run needs about") as error:
        check_fits(settings, list(parts_of(settings).values()), available)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="tests a CPU's memory")
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], None),
        (["max\n"], None),
        ([f"{2**63 - 1}\n"], None),
        (["1048576\n"], 2**20),
        (["max\n", "1048576\n"], 2**20),
    ],
)
def test_a_cpu_has_the_machines_memory_unless_a_group_is_limited(
    texts, expected, monkeypatch, tmp_path
):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < available_bytes() <= machine
    paths = [tmp_path / f"limit{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    monkeypatch.setattr(module, "_CGROUP_LIMITS", (*paths, tmp_path / "missing"))
    assert available_bytes() == (expected or machine)


def test_required_memory_matches_the_arrays():
    parts = parts_of(config())
    assert parts["the network and its optimizer"].size == GIB // 2
    stages = {
        None: {"the replay", "the network and its optimizer"},
        "updates": {"the replay index", "the batch and its gradient"},
        "self-play": {"the trajectory of a chunk", "the search of self-play"},
        "evaluation": {"the search of evaluations"},
    }
    for stage, names in stages.items():
        assert {name for name, part in parts.items() if part.stage == stage} == names
    # A CPU needs saved arrays twice, and the network on each of its devices.
    for num_devices, copies in ((1, 2), (3, 4)):
        parts = parts_of(config(), num_devices, is_cpu=True)
        saved = parts["the network and its optimizer (with the copy being saved)"]
        assert saved.size == copies * GIB / 2


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        (
            {
                "replay": ReplayConfig(capacity=2**17),
                "learner": LearnerConfig(batch_size=17),
                "self_play": SelfPlayConfig(
                    num_games=8, moves_per_chunk=2, num_simulations=(9, 1)
                ),
                "evaluation": EvaluationConfig(num_simulations=200),
            },
            [
                "the replay",
                "the replay index",
                "the batch and its gradient",
                "the search of self-play",
                "the search of evaluations",
            ],
        ),
        (
            {
                "network": NetworkConfig(trunk=DenseTrunkConfig(num_blocks=2)),
                "games": 16,
            },
            [
                "the batch and its gradient",
                "the trajectory of a chunk",
                "the search of self-play",
            ],
        ),
        ({"search": GumbelConfig(tree_reuse_nodes=4)}, ["the search of self-play"]),
        ({"search": GumbelConfig(use_solver=True)}, ["the search of self-play"]),
    ],
)
def test_larger_settings_need_more(changes, names):
    """Each item depends on one of the changes."""
    larger, smaller = parts_of(config(**changes)), parts_of(config())
    for name in names:
        assert larger[name].size > smaller[name].size, name


@pytest.mark.parametrize("exact_lanes", [False, True])
def test_devices_share_all_but_the_network(exact_lanes):
    """With exact lanes, one device evaluates."""
    settings = config(exact_lanes=exact_lanes)
    alone, shared = parts_of(settings), parts_of(settings, num_devices=8)
    whole = {"the network and its optimizer"}
    whole |= {"the search of evaluations"} if exact_lanes else set()
    for name, part in alone.items():
        size = shared[name].size
        assert size == part.size if name in whole else size < part.size / 2, name


def test_a_run_that_fits_is_accepted():
    parts = list(parts_of(config()).values())
    needed = sum(part.size for part in needed_at_once(parts))
    for available in (needed, 2 * needed, None):
        check_fits(config(), parts, available)
    refusal(config(), available=needed - 1)


def test_stages_that_do_not_run_together_are_not_added():
    parts = [
        MemoryItem("always", 1, None, ()),
        MemoryItem("play", 7, "self-play", ()),
        MemoryItem("one", 4, "updates", ()),
        MemoryItem("other", 5, "updates", ()),
    ]
    assert [part.name for part in needed_at_once(parts)] == ["other", "one", "always"]


def test_the_setting_of_the_largest_part_is_named_first():
    settings = config(
        learner=LearnerConfig(batch_size=10**8), replay=ReplayConfig(capacity=2**30)
    )
    message = refusal(settings, available=2**33)
    assert (
        "and the device has 8.00 GiB: lower learner.batch_size (100000000)" in message
    )
    first, second, *_ = message.split("; ")
    assert "for the batch and its gradient" in first
    assert second.startswith("replay.capacity (1073741824) for the replay")


def test_advice_omits_settings_at_their_minimum():
    smallest = config(
        games=1,
        network=SMALLEST,
        self_play=SelfPlayConfig(num_games=1, moves_per_chunk=2, num_simulations=(1,)),
        learner=LearnerConfig(batch_size=1),
        evaluation=EvaluationConfig(num_simulations=1),
    )
    message = refusal(smallest, available=2**20)
    assert message.endswith("the device has 0.00 GiB: use a larger device")


def test_other_device_errors_pass_unchanged():
    with (
        pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: broken"),
        memory_errors(config(), []),
    ):
        raise jax.errors.JaxRuntimeError("INTERNAL: broken")


def test_sizes_of_many_games_do_not_overflow():
    settings = config(games=2**30, search=GumbelConfig(tree_reuse_nodes=100))
    message = refusal(settings, available=2**40)
    assert "lower self_play.num_games (1073741824)" in message


@pytest.mark.skipif(available_bytes() is None, reason="the device does not tell")
def test_training_that_cannot_fit_raises_and_writes_nothing(tmp_path):
    learner = LearnerConfig(batch_size=2 * 10**9)
    settings = config(tmp_path / "run", learner=learner, network=SMALLEST)
    with pytest.raises(ValueError, match=r"learner.batch_size \(2000000000\)"):
        train(settings)
    assert not settings.directory.exists()


@pytest.mark.usefixtures("quick_plots")
def test_training_that_runs_out_of_memory_raises_with_advice(tmp_path):
    def allocate(row):
        jnp.zeros(2**47, jnp.int8).block_until_ready()

    settings = config(
        tmp_path / "run",
        network=SMALLEST,
        game="gomoku:3,4,3",  # without solved positions, nothing is evaluated
        replay=ReplayConfig(capacity=2**17),
        evaluation=EvaluationConfig(opponents=()),
    )
    message = r"ran out of memory; .* lower replay.capacity \(131072\) for the replay"
    with pytest.raises(ValueError, match=message) as error:
        train(settings, on_evaluation=allocate)
    assert "\n" not in str(error.value)
