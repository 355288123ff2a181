"""Runs the scripts in `experiments/` with tiny settings."""

import contextlib
import io
import os
import pathlib
import runpy
import subprocess
import sys
import types
from unittest import mock

import pytest

from azjax import games, players
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.search import GumbelConfig

FOLDER = pathlib.Path(__file__).parents[2] / "experiments"
SECONDS = 120  # time limit of a script that is a process


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
    """Returns a function that runs a script here, in a temporary folder.

    It returns the output.
    """

    def run_here(script, *args):
        path, status = FOLDER / script, None
        with (
            imports_of(path) as patch,
            contextlib.redirect_stdout(io.StringIO()) as out,
        ):
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", [str(path), *map(str, args)])
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as end:
                status = end.code
        assert not status, (status, out.getvalue())
        return out.getvalue()

    return run_here


@pytest.fixture
def run_process(tmp_path):
    """Returns a function that does the same in a process with a time limit."""

    def run_there(script, *args):
        result = subprocess.run(
            [sys.executable, FOLDER / script, *map(str, args)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run_there


@pytest.fixture
def save_untrained_player():
    """Returns a function that saves a player of tic-tac-toe."""

    def save(directory, dtype="float32"):
        game = games.make("tic_tac_toe")
        config = NetworkConfig(DenseTrunkConfig(width=16, num_blocks=1), dtype=dtype)
        network, variables = players.first_network(0, game, config)
        trained = players.TrainedPlayer(
            game, network, variables, config, GumbelConfig(), seed=0
        )
        players.save_player(directory, trained)

    return save
