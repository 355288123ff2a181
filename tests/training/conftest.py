import contextlib
import signal

import pytest
import shared_programs as shared_programs_module
from matplotlib.figure import Figure
from training.tiny_runs import config, stop_after

from azjax.data import GAMES, game_files
from azjax.training import train
from azjax.training.analysis import plots


@contextlib.contextmanager
def empty_plots():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "draw_learning", lambda rows, title: Figure((1, 1)))
        yield


@pytest.fixture(scope="module")
def quick_plots():
    """Writes an empty picture instead of the learning plot."""
    with empty_plots():
        yield


@pytest.fixture(scope="module")
def shared_programs():
    """Makes runs with equal settings compile once."""
    with shared_programs_module.shared_programs():
        yield


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A run of `config`, which keeps its games. Tests do not change its files."""
    directory = tmp_path_factory.mktemp("runs") / "undisturbed"
    with empty_plots(), shared_programs_module.shared_programs():
        return train(config(directory))


@pytest.fixture(scope="session")
def resumed(tmp_path_factory):
    """The same run in three segments, with files of games of a killed fourth one."""
    directory = tmp_path_factory.mktemp("runs") / "resumed"
    runs = []
    with empty_plots(), shared_programs_module.shared_programs():
        for iteration, number in ((2, signal.SIGTERM), (3, signal.SIGINT)):
            stop = stop_after(iteration, number)
            runs.append(train(config(directory), on_iteration=stop))
        newest = game_files(directory / GAMES)[-1].path
        later = newest.with_name("00000004-00000009-0.parquet")
        later.write_bytes(newest.read_bytes())
        newest.with_name(f".{later.name}.77").write_bytes(b"unfinished")
        return [*runs, train(config(directory))]
