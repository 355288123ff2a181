import json
import os
import shutil

import pytest

from azjax.play.server.runs import find_runs, plot_version, read_plot


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "first").mkdir()
    config = {"format": 10, "game": "tic_tac_toe"}
    (tmp_path / "first/config.json").write_text(json.dumps(config))
    return tmp_path


def only_run(directory):
    (run,) = find_runs(directory).values()
    return run


def test_a_run_without_a_player_is_found(directory):
    run = only_run(directory)
    assert run.title == "first: Tic Tac Toe"
    assert (run.kind, run.minutes, run.iterations) == (None, None, None)
    assert not run.has_player
    assert read_plot(run) is None
    assert plot_version(run) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"format": 10, "game": 3}',
        '{"format": 10, "game": "draughts"}',
        '{"format": 10, "game": "go:99"}',
        '{"format": 10, "game": "tic_tac_toe", "kind": []}',
        '{"format": 10, "game": "tic_tac_toe", "kind": {"q_learning": 1}}',
        '{"format": 10, "game": "tic_tac_toe", "kind": "gtp:touch owned"}',
        '{"format": 10, "game": "tic_tac_toe", "kind": ""}',
        '{"format": 10, "game": "tic_tac_toe", "kind": "alphazero"}',
        '{"format": 10, "game": ["tic_tac_toe"]}',
        "[" * 100_000,
        '{"format": 10, "game": "tic_tac_toe", "kind": "' + "x" * 1_000_000 + '"}',
        '{"format": 10, "game": "' + "x" * 2_000_000 + '"}',
    ],
)
def test_a_directory_that_is_not_a_run_is_ignored(directory, content):
    (directory / "first/config.json").write_text(content)
    assert find_runs(directory) == {}


def test_a_missing_directory_has_no_runs(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    assert find_runs(tmp_path) == {}
    assert find_runs(tmp_path / "nowhere") == {}
    assert find_runs(tmp_path / "file") == {}


def test_the_plot_is_the_content_of_its_file(directory):
    path = directory / "first/plots/learning.png"
    path.parent.mkdir()
    path.write_bytes(b"PNG")
    run = only_run(directory)
    assert read_plot(run) == b"PNG"
    before = plot_version(run)
    os.utime(path, (0, 0))
    assert plot_version(run) != before


def test_an_unreadable_run_is_logged_once_and_in_one_short_line(directory, caplog):
    (directory / "second").mkdir()
    (directory / "second/config.json").write_text(
        '{"format": 10, "game": "' + "x\\n" * 9999 + '"}'
    )
    for _ in range(3):
        assert list(find_runs(directory)) == ["first"]
    (line,) = caplog.messages
    assert "'second'" in line
    assert "unknown game" in line
    assert "\n" not in line
    assert len(line) < 400


def test_a_run_with_an_unprintable_name_is_ignored(directory):
    (directory / "first").rename(os.fsdecode(os.fsencode(directory) + b"/\xff\n"))
    shutil.copytree(next(directory.iterdir()), directory / "first")
    assert list(find_runs(directory)) == ["first"]


@pytest.mark.parametrize("length", ["1e999", "-1", '"2"', "true", "1" * 400, "[]"])
def test_an_invalid_length_is_none(directory, length):
    config = f'{{"format": 10, "game": "tic_tac_toe", "minutes": {length}}}'
    (directory / "first/config.json").write_text(config)
    assert only_run(directory).minutes is None


def test_a_config_that_is_not_a_file_is_ignored(directory):
    path = directory / "first/config.json"
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    assert find_runs(directory) == {}  # does not wait for a writer
    path.unlink()
    (directory / "outside.json").write_bytes(content)
    path.symlink_to(directory / "outside.json")
    assert find_runs(directory) == {}


@pytest.mark.parametrize("name", ["plots", "plots/learning.png"])
def test_a_plot_outside_the_run_is_not_read(directory, name):
    outside = directory / "outside"
    (outside / "plots").mkdir(parents=True)
    (outside / "plots/learning.png").write_bytes(b"PNG")
    (directory / "first" / name).parent.mkdir(exist_ok=True)
    (directory / "first" / name).symlink_to(outside / name)
    run = only_run(directory)
    assert read_plot(run) is None
    assert plot_version(run) is None


def test_a_plot_that_is_not_a_file_or_too_large_is_not_read(directory):
    path = directory / "first/plots/learning.png"
    path.parent.mkdir()
    os.mkfifo(path)
    assert read_plot(only_run(directory)) is None
    path.unlink()
    with path.open("wb") as file:
        file.truncate(10**12)  # takes no space on the disk
    assert read_plot(only_run(directory)) is None
    assert plot_version(only_run(directory)) is None
