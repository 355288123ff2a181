import os

import jax
import jax.numpy as jnp
import pytest
from flax import struct

from azjax import games
from azjax.networks import NetworkConfig
from azjax.search import SearchConfig
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    train,
)
from azjax.training import memory as module
from azjax.training.memory import available_bytes, check_memory, required_bytes

GAME = games.make("tic_tac_toe")
GIB = 2**30


@struct.dataclass
class State:
    replay: jax.Array
    weights: jax.Array


def init() -> State:
    """A gibibyte and a half."""
    return State(jnp.zeros(2**28, jnp.float32), jnp.zeros(2**27, jnp.float32))


def config(directory="runs/none", games=8, **changes) -> TrainConfig:
    settings = {
        "game": "tic_tac_toe",
        "iterations": 1,
        "run_dir": str(directory),
        "network": NetworkConfig(width=16, num_blocks=1, stem_channels=8, window=3),
        "self_play": SelfPlayConfig(games=games, moves_per_chunk=2, simulations=(2, 5)),
        "replay": ReplayConfig(capacity=2 * games),
        "learner": LearnerConfig(batch_size=16),
    }
    return TrainConfig(**settings | changes)


def limit(monkeypatch, tmp_path, *texts):
    """Lets the process's group have limits of its own."""
    paths = []
    for number, text in enumerate(texts):
        path = tmp_path / f"limit{number}"
        path.write_text(text)
        paths.append(path)
    monkeypatch.setattr(module, "_CGROUP_LIMITS", (*paths, tmp_path / "missing"))


cpu_only = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="says how a CPU's memory is found"
)


def test_the_device_has_memory():
    available = available_bytes()
    assert available is None or available > 2**20


@cpu_only
def test_a_cpu_has_the_machines_memory_unless_a_group_is_limited(monkeypatch, tmp_path):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    available = available_bytes()
    assert available is not None
    assert 0 < available <= machine
    limit(monkeypatch, tmp_path, "max\n")
    assert available_bytes() == machine


@cpu_only
@pytest.mark.parametrize("texts", [["1048576\n"], ["max\n", "1048576\n"]])
def test_the_limit_of_the_processs_group_is_kept(texts, monkeypatch, tmp_path):
    limit(monkeypatch, tmp_path, *texts)
    assert available_bytes() == 1048576


@cpu_only
def test_a_limit_above_the_machines_memory_is_none(monkeypatch, tmp_path):
    limit(monkeypatch, tmp_path, f"{2**63 - 1}\n")
    assert available_bytes() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_what_a_run_needs_is_told_by_its_parts():
    required = required_bytes(config(), GAME, init)
    assert required["the replay"] == GIB
    assert required["the rest"] == GIB // 2
    assert set(required) == {
        "the replay",
        "the search of self-play",
        "the search of evaluations",
        "the rest",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"games": 16},
        {"search": SearchConfig(kept_nodes=4)},
        {"search": SearchConfig(proves=True)},
        {"self_play": SelfPlayConfig(games=8, moves_per_chunk=2, simulations=(9, 1))},
    ],
)
def test_a_larger_search_needs_more(changes):
    less = required_bytes(config(), GAME, init)["the search of self-play"]
    assert (
        required_bytes(config(**changes), GAME, init)["the search of self-play"] > less
    )


def needed_bytes():
    """What the run needs while it evaluates, which is when it searches most."""
    required = required_bytes(config(), GAME, init)
    return sum(required.values()) - required["the search of self-play"]


def test_a_larger_search_in_evaluations_needs_more():
    larger = config(evaluation=EvaluationConfig(simulations=200))
    name = "the search of evaluations"
    less = required_bytes(config(), GAME, init)[name]
    assert required_bytes(larger, GAME, init)[name] > less


def test_a_run_that_fits_is_accepted(monkeypatch):
    needed = needed_bytes()
    for available in (needed, 2 * needed, None):
        monkeypatch.setattr(module, "available_bytes", lambda size=available: size)
        check_memory(config(), GAME, init)


def test_a_run_that_does_not_fit_is_refused_with_what_to_lower(monkeypatch):
    needed = needed_bytes()
    monkeypatch.setattr(module, "available_bytes", lambda: needed - 1)
    with pytest.raises(ValueError, match=r"needs at least 1\.51 GiB") as error:
        check_memory(config(), GAME, init)
    message = str(error.value)
    for text in (
        "the replay 1.00 GiB",
        "the search of self-play 0.00 GiB",
        "the rest 0.50 GiB",
        "the device has 1.51 GiB",
        "self_play.games (8)",
        "self_play.simulations (5 at most)",
        "evaluation.simulations (64)",
        "search.kept_nodes (0)",
        "search.leaves_per_step (1)",
        "replay.capacity (16)",
    ):
        assert text in message
    assert "\n" not in message


@pytest.mark.skipif(available_bytes() is None, reason="the device does not tell")
@pytest.mark.parametrize("kept_nodes", [0, 100])
def test_training_refuses_at_once_and_leaves_nothing_behind(kept_nodes, tmp_path):
    directory = tmp_path / "run"
    search = SearchConfig(kept_nodes=kept_nodes)
    with pytest.raises(ValueError, match=r"self_play.games \(1073741824\)"):
        train(config(directory, games=2**30, search=search))
    assert not directory.exists()
