"""Fixtures and settings shared by all tests."""

import faulthandler
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path

import jax
import numpy as np
import pytest
from cpu_limit import CpuLimit
from fake_hub import TOKEN, FakeHub
from quick_compilation import FEW_OPTIMIZATIONS

from azjax import games
from azjax.players import ForfeitError, MoveDecision

# Several processes run tests in parallel: none may reserve all of a GPU's memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

# Linux limits a process to 65,530 memory mappings; a compiled program uses several. At
# this limit, a worker uses about 1.5 GB.
MANY_MAPPINGS = 4_000

# Their runs and searches have the same settings: in one process they share programs and
# one of the runs.
SMALL_RUNS = (
    "tests/test_cli.py",
    *("tests/training/test_iteration.py", "tests/training/run/test_game_writer.py"),
    *("tests/training/test_lanes.py", "tests/training/test_loop.py"),
    *("tests/training/test_reanalysis.py", "tests/training/run/test_remote_runs.py"),
    *("tests/training/test_stored_fraction.py", "tests/training/test_game_reader.py"),
)

# The tests of each of these folders have the same games and players.
TOGETHER = (
    *("tests/arena", "tests/commands", "tests/data", "tests/games"),
    *("tests/networks", "tests/players", "tests/search"),
)

# A complete run of all tests compiles about 200 MB of programs.
MAX_CACHE_BYTES = 2_000_000_000


def pytest_configure(config):
    """Sets up XLA for the tests: little optimization, and one cache for all workers.

    The tests spend more time in compilation than in execution, so XLA optimizes little.
    If `XLA_FLAGS` is set, even to an empty text, they run with these flags. Newer
    versions of XLA may reject a flag that they do not know.

    Workers and the programs that the tests start inherit the environment. The user's
    cache is neither read nor written. The tests' cache is part of pytest's, which
    `--cache-clear` empties, so that the next run of the tests compiles only changed
    programs. It stores all programs: loading even the smallest is faster than compiling
    it.
    """
    if jax.__version_info__ < (0, 11):
        os.environ.setdefault("XLA_FLAGS", FEW_OPTIMIZATIONS)
    if not hasattr(config, "workerinput"):
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(compiled_programs(config))
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    jax.config.update(
        "jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"]
    )
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.devices()  # fixes their number before a command can choose another
    config.pluginmanager.register(CpuLimit())


def compiled_programs(config):
    """Returns the folder of compiled programs; empties it if it has become large.

    With `-p no:cacheprovider`, returns a folder for this run only.
    """
    if not hasattr(config, "cache"):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        return folder.name
    folder = config.cache.mkdir("programs")
    if sum(file.stat().st_size for file in folder.iterdir()) > MAX_CACHE_BYTES:
        shutil.rmtree(folder)
        folder.mkdir()
    return folder


def pytest_sessionstart(session):
    """Makes a worker that crashes leave its stacks to `pytest_handlecrashitem`."""
    if hasattr(session.config, "workerinput"):
        file = crash_file(session.config.workerinput)
        faulthandler.enable(file.open("w"))
        session.config.add_cleanup(lambda: file.unlink(missing_ok=True))


def pytest_handlecrashitem(report):
    """Adds the stacks of a worker that crashed to the report of its test."""
    file = crash_file(report.node.workerinput)
    if file.exists():
        report.sections.append(("Stacks of the worker", file.read_text()))
        file.unlink()


def crash_file(worker):
    name = f"azjax-{worker['testrunuid']}-{worker['workerid']}"
    return Path(tempfile.gettempdir(), name)


def pytest_xdist_auto_num_workers():
    """Returns the number of cores plus one, because tests of browsers often wait."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config, log):
    """Gives each file to one worker, so that its tests share programs; the files of
    `SMALL_RUNS`, and those of a folder in `TOGETHER`, to the same one."""
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415, not always there

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            folder = "/".join(file.split("/")[:2])
            if file in SMALL_RUNS:
                return "small runs"
            return folder if folder in TOGETHER else file

        def remove_node(self, node):
            """Fails the test during which a worker died, and gives the ones after it
            to others; xdist would run that test again and again."""
            units = self.assigned_work.pop(node).items()
            unfinished = [name for _, unit in units for name in unit if not unit[name]]
            if not unfinished:
                return None
            for _, unit in units:
                if unfinished[0] in unit:
                    unit[unfinished[0]] = True
            left = {scope: unit for scope, unit in units if not all(unit.values())}
            self.workqueue.update(left)
            for other in self.assigned_work:
                self._reschedule(other)
            return unfinished[0]

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish():
    """Stops the garbage collector from scanning all imported modules repeatedly.

    Tracing makes many objects that live: with Python's thresholds the collector takes
    7% of the time of the tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def program(name):
    """Returns a program's path; if it is missing, skips the test, or fails in CI."""
    path = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}/usr/games")
    if path is None:
        is_required = os.environ.get("AZJAX_STRICT_TESTS")
        (pytest.fail if is_required else pytest.skip)(f"needs the program {name}")
    return path


@pytest.fixture(scope="session")
def program_environment():
    """The environment of programs whose standard error is compared."""
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONWARNINGS": "ignore:Error reading persistent compilation cache entry",
    }


@pytest.fixture
def start_azjax(program_environment):
    """Starts azjax with pipes, and stops it after the test."""
    started = []

    def run(*args):
        process = subprocess.Popen(
            [sys.executable, "-m", "azjax", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=program_environment,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


@pytest.fixture(scope="session")
def chromium():
    return program("chromium")


@pytest.fixture(scope="session")
def gnugo():
    return program("gnugo")


@pytest.fixture(scope="session")
def node():
    return program("node")


@pytest.fixture(scope="session")
def stockfish():
    return program("stockfish")


@pytest.fixture(scope="module", autouse=True)
def drop_compiled_programs():
    """Drops the compiled programs before they exhaust memory mappings or memory."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or len(maps.read_bytes().splitlines()) > MANY_MAPPINGS:
        jax.clear_caches()


TIC_TAC_TOE = games.make("tic_tac_toe")


class FirstCell:
    """Plays the first free cell, from a3 on, or forfeits if `is_dead`."""

    def __init__(self):
        self.is_dead = self.is_closed = False
        self.asked = []

    def choose(self, state, moves):
        self.asked.append(list(moves))
        if self.is_dead:
            raise ForfeitError("the engine died")
        action = int(np.asarray(TIC_TAC_TOE.legal_action_mask(state)).argmax())
        return MoveDecision(action, np.eye(9, dtype=np.float32)[action], 0.5)

    def close(self):
        self.is_closed = True


class FirstCellPlayer:
    """Starts `FirstCell` sessions and records them."""

    def __init__(self):
        self.sessions = []

    def start_session(self, game, seed):
        self.sessions.append(FirstCell())
        return self.sessions[-1]


class Later:
    """An executor that runs the work when the test calls `work`."""

    def __init__(self):
        self.waiting = []

    def __call__(self, work, then):
        self.waiting.append((work, then))

    def work(self):
        """Runs the first work in the queue and calls its callback."""
        work, then = self.waiting.pop(0)
        outcome = Future()
        try:
            outcome.set_result(work())
        except ForfeitError as error:
            outcome.set_exception(error)
        then(outcome)


@pytest.fixture
def session():
    return FirstCell()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def opponent():
    return FirstCellPlayer()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A fake Hugging Face Hub, which huggingface_hub uses, with a token."""
    import huggingface_hub  # noqa: PLC0415, few tests need it
    from huggingface_hub import constants  # noqa: PLC0415

    with FakeHub() as server:
        # The user's own token and cache are neither read nor written.
        own = ("HF_TOKEN_PATH", "HF_STORED_TOKENS_PATH", "HF_HOME", "HF_HUB_CACHE")
        settings = {name: str(tmp_path / "home" / name) for name in own} | {
            "ENDPOINT": server.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": server.url
            + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_DISABLE_XET": True,  # another protocol
        }
        for name, value in settings.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server
        huggingface_hub.close_session()
