"""What all tests share."""

import os
import tempfile
from concurrent.futures import Future

import jax
import numpy as np
import pytest

from azjax import games
from azjax.players import ForfeitError, Thought

# Several processes test at once: none may take all of a GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

FEW_OPTIMIZATIONS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)


def pytest_configure(config):
    """Lets XLA optimize little in the fast tests: they compile longer than they run.

    The slow ones run what users run, and so does all where `XLA_FLAGS` is set, be it to
    nothing. Programs that the tests start inherit it. Compilers of newer versions end
    the process over a flag that they no longer know.
    """
    is_known = jax.__version_info__ < (0, 11)
    if is_known and config.option.markexpr.strip() == "not slow":
        os.environ.setdefault("XLA_FLAGS", FEW_OPTIMIZATIONS)


@pytest.fixture(scope="session", autouse=True)
def keep_compiled_programs():
    """Keeps them in files while the tests run: many tests compile the same ones.

    Each process has its own directory, for JAX may read a file half written by
    another. The user's directory is neither used nor filled.
    """
    with (
        tempfile.TemporaryDirectory(prefix="azjax-") as directory,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("JAX_COMPILATION_CACHE_DIR", directory)
        jax.config.update("jax_compilation_cache_dir", directory)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)
        yield
        jax.config.update("jax_compilation_cache_dir", None)


@pytest.fixture(scope="module", autouse=True)
def drop_compiled_programs():
    """Thousands of them in one process exhaust its memory mappings, and it dies."""
    yield
    jax.clear_caches()


TIC_TAC_TOE = games.make("tic_tac_toe")


class FirstCell:
    """Takes the first free cell, from a3 on, and is sure of it; or dies."""

    def __init__(self):
        self.is_dead = self.is_closed = False
        self.asked = []

    def choose(self, state, moves):
        self.asked.append(list(moves))
        if self.is_dead:
            raise ForfeitError("the engine died")
        action = int(np.asarray(TIC_TAC_TOE.legal_action_mask(state)).argmax())
        return Thought(action, np.eye(9, dtype=np.float32)[action], 0.5)

    def close(self):
        self.is_closed = True


class FirstCellPlayer:
    """Sits down as a `FirstCell`; remembers its seats."""

    def __init__(self):
        self.seats = []

    def sit(self, game, seed):
        self.seats.append(FirstCell())
        return self.seats[-1]


class Later:
    """Works when it is told to, as a thread may be slow."""

    def __init__(self):
        self.waiting = []

    def __call__(self, work, then):
        self.waiting.append((work, then))

    def work(self):
        """Does the first thing that waits, and hands it on."""
        work, then = self.waiting.pop(0)
        outcome = Future()
        try:
            outcome.set_result(work())
        except ForfeitError as error:
            outcome.set_exception(error)
        then(outcome)


@pytest.fixture
def seat():
    return FirstCell()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def opponent():
    return FirstCellPlayer()
