import json
import os

import pytest

from azjax.play.server.runs import find_runs, plot_stamp, read_plot


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "first").mkdir()
    config = {"format": 1, "game": "tic_tac_toe"}
    (tmp_path / "first/config.json").write_text(json.dumps(config))
    return tmp_path


def only_run(directory):
    (run,) = find_runs(directory).values()
    return run


def test_a_run_that_has_just_begun_is_found(directory):
    run = only_run(directory)
    assert run.title == "first: Tic Tac Toe"
    assert (run.kind, run.minutes, run.iterations) == (None, None, None)
    assert not run.has_player
    assert read_plot(run) is None
    assert plot_stamp(run) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"game": 3}',
        '{"game": "draughts"}',
        '{"game": "go:99"}',
    ],
)
def test_a_directory_that_is_no_run_is_left_out(directory, content):
    (directory / "first/config.json").write_text(content)
    assert find_runs(directory) == {}


def test_runs_need_not_be_there(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    assert find_runs(tmp_path) == {}
    assert find_runs(tmp_path / "nowhere") == {}
    assert find_runs(tmp_path / "file") == {}


def test_the_plot_is_the_file_as_it_is(directory):
    path = directory / "first/plots/learning.png"
    path.parent.mkdir()
    path.write_bytes(b"PNG")
    run = only_run(directory)
    assert read_plot(run) == b"PNG"
    before = plot_stamp(run)
    os.utime(path, (0, 0))
    assert plot_stamp(run) != before
