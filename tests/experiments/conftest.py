"""Runs the scripts in `experiments/` with tiny settings."""

import contextlib
import io
import os
import pathlib
import runpy
import signal
import sys
import types
from unittest import mock

import pytest
from untrained import untrained_player

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig

FOLDER = pathlib.Path(__file__).parents[2] / "experiments"
SECONDS = 300  # time limit of a script


@contextlib.contextmanager
def imports_of(script):
    """Lets a script import the modules next to it, and forgets them afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        patch.syspath_prepend(script.parent)
        yield patch
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and FOLDER in pathlib.Path(file).parents:
            del sys.modules[name]


@pytest.fixture
def load():
    """Returns a function that loads a script without running it."""

    def load_here(script):
        with imports_of(FOLDER / script):
            return types.SimpleNamespace(**runpy.run_path(str(FOLDER / script)))

    return load_here


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs a script here, with a time limit and in a temporary
    folder, and returns the output."""

    def end(number, frame):
        raise TimeoutError(f"more than {SECONDS} seconds")

    def run_here(script, *args):
        path, status = FOLDER / script, None
        with (
            imports_of(path) as patch,
            contextlib.redirect_stdout(io.StringIO()) as out,
        ):
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", [str(path), *map(str, args)])
            before = signal.signal(signal.SIGALRM, end)
            signal.alarm(SECONDS)
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as exit_:
                status = exit_.code
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, before)
        assert not status, (status, out.getvalue())
        return out.getvalue()

    return run_here


@pytest.fixture
def save_untrained_player():
    """Returns a function that saves a player of tic-tac-toe."""

    def save(directory, dtype="float32"):
        config = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1), dtype=dtype)
        player = untrained_player(games.make("tic_tac_toe"), config)
        players.save_player(directory, player)

    return save
