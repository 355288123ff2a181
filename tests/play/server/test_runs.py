import json
import os

import pytest

from azjax.play.server.runs import describe_run, find_runs, read_plot


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "first").mkdir()
    config = {"format": 1, "game": "tic_tac_toe"}
    (tmp_path / "first/config.json").write_text(json.dumps(config))
    return tmp_path


def only_run(directory):
    (run,) = find_runs(directory).values()
    return run


def write_rows(directory, *rows):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    (directory / "first/metrics.jsonl").write_text(text)


def test_a_run_that_has_just_begun_is_shown_with_what_is_there(directory):
    run = only_run(directory)
    assert describe_run(run) == {
        "title": "first: Tic Tac Toe",
        "iteration": None,
        "is_training": False,
        "latest": {},
    }
    assert read_plot(run) is None
    assert not run.has_player


def test_the_newest_rows_are_shown(directory):
    iteration = {"kind": "iteration", "iteration": 2, "positions": 640}
    write_rows(
        directory,
        {"kind": "evaluation", "iteration": 1, "network_mistakes": 0.5},
        {**iteration, "policy_loss": None, "value_loss": 0.25},
        {"iteration": 2, "score_random": 0.75, "score_random_low": 0},
        {"kind": "iteration", "iteration": 3, "positions": 960, "value_loss": 0.125},
    )
    told = describe_run(only_run(directory))
    assert told["iteration"] == 3
    assert told["is_training"]
    assert told["latest"] == {
        "Iteration": 3,
        "Positions": 960,
        "Value loss": 0.125,
        "Mistakes of the network": 0.5,
        "Points against random": 0.75,
    }


def test_a_run_whose_rows_are_old_has_ended(directory):
    write_rows(directory, {"iteration": 1})
    os.utime(directory / "first/metrics.jsonl", (0, 0))
    assert not describe_run(only_run(directory))["is_training"]


@pytest.mark.parametrize("line", ["{", "[]", "7", "\0\xff", '{"iteration": "x"}'])
def test_a_broken_row_is_left_out(directory, line):
    write_rows(directory, {"iteration": 4, "positions": 10}, line)
    told = describe_run(only_run(directory))
    assert told["latest"]["Positions"] == 10


def test_numbers_that_are_none_are_left_out(directory):
    write_rows(directory, '{"iteration": 4, "positions": NaN, "games": Infinity}')
    assert describe_run(only_run(directory))["latest"] == {"Iteration": 4}


def test_a_long_file_is_read_from_its_end(directory):
    rows = [{"iteration": number, "text": "x" * 1000} for number in range(1000)]
    write_rows(directory, *rows)
    assert describe_run(only_run(directory))["iteration"] == 999


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
    (directory / "first/plots").mkdir()
    (directory / "first/plots/learning.png").write_bytes(b"PNG")
    assert read_plot(only_run(directory)) == b"PNG"
