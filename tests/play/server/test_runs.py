import json
import os
import shutil

import pytest

from azjax.play.server.runs import (
    MAX_RATES,
    describe_progress,
    find_runs,
    latest_numbers,
    plot_version,
    read_plot,
)
from azjax.training import TrainConfig
from azjax.training.run.directory import open_run_directory


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "first").mkdir()
    write_config(tmp_path, minutes=2)
    return tmp_path


def write_config(directory, **settings):
    config = {"format": 10, "game": "tic_tac_toe", **settings}
    (directory / "first/config.json").write_text(json.dumps(config))


def only_run(directory):
    (run,) = find_runs(directory).values()
    return run


def write_rows(directory, *rows):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    (directory / "first/metrics.jsonl").write_text(text)


def progress(directory):
    return describe_progress(only_run(directory))


def numbers(directory):
    return dict(latest_numbers(only_run(directory)))


def test_a_run_is_learning_while_its_process_holds_the_lock(tmp_path):
    config = TrainConfig(
        game="tic_tac_toe", iterations=4, run_dir=str(tmp_path / "first")
    )
    with open_run_directory(config):
        assert progress(tmp_path) == {"state": "learning", "share": 0.0}
        write_rows(tmp_path, {"kind": "iteration", "iteration": 1, "seconds": 3.5})
        assert progress(tmp_path) == {"state": "learning", "share": 0.25}
    assert progress(tmp_path) == {"state": "stopped", "share": 0.25}


def test_a_run_without_metrics_was_stopped(directory):
    assert progress(directory) == {"state": "stopped", "share": 0.0}
    assert numbers(directory) == {}


def test_a_run_is_finished_after_its_last_evaluation(directory):
    end = {"iteration": 28, "seconds": 120.5}
    write_rows(directory, {"kind": "iteration", **end})  # killed before its end
    assert progress(directory) == {"state": "stopped", "share": 1.0}
    write_rows(directory, {"kind": "iteration", **end}, {"kind": "evaluation", **end})
    assert progress(directory) == {"state": "finished", "share": 1.0}
    write_rows(directory, {"kind": "evaluation", **end, "seconds": 119.9})
    assert progress(directory)["state"] == "stopped"


def test_a_run_can_be_measured_in_iterations(directory):
    write_config(directory, minutes=None, iterations=40)
    write_rows(directory, {"kind": "evaluation", "iteration": 39, "seconds": 1e6})
    assert progress(directory) == {"state": "stopped", "share": 39 / 40}
    write_rows(directory, {"kind": "evaluation", "iteration": 40, "seconds": 1e6})
    assert progress(directory)["state"] == "finished"


@pytest.mark.parametrize(
    "length", ["null", "0", "-1", "1e999", "1" * 400, '"2"', "true", "[]"]
)
def test_a_run_of_unknown_length_has_no_share(directory, length):
    config = f'{{"format": 10, "game": "tic_tac_toe", "minutes": {length}}}'
    (directory / "first/config.json").write_text(config)
    write_rows(directory, {"kind": "evaluation", "iteration": 1, "seconds": 60.0})
    assert only_run(directory).minutes is None
    assert progress(directory) == {"state": "stopped", "share": None}


def test_the_newest_numbers_are_shown_with_names_and_units(directory):
    iteration = {"kind": "iteration", "iteration": 2, "positions": 640}
    evaluation = {"kind": "evaluation", "iteration": 1, "network_mistakes": 0.5}
    write_rows(
        directory,
        {**evaluation, "scores": {"random": {"score": 0.75, "score_low": 0}}},
        {**iteration, "policy_loss": None, "value_loss": 0.25},
        {
            **iteration,
            "iteration": 1234,
            "seconds": 65.4,
            "positions_per_second": 2505.76,
            "value_loss": 0.125,
            "gradient_norm": 3.0,
        },
    )
    assert numbers(directory) == {
        "Time": "1 min 05 s of 2 min 00 s",
        "Iteration": "1,234",
        "Positions": "640",
        "Speed": "2,506 positions/s",
        "Mistakes, network alone": "50.0%",
        "Score, network alone against random": "75.0%",
        "Value loss": "0.125",
    }


def test_the_matches_of_q_learning_are_shown(directory):
    matches = {"random": {"not_lost": 0.995}, "broken": 3}
    write_rows(directory, {"kind": "evaluation", "iteration": 7, "matches": matches})
    assert numbers(directory) == {"Iteration": "7", "Not lost against random": "99.5%"}


@pytest.mark.parametrize("line", ["{", "[]", "7", "\0\xff", '{"iteration": "x"}'])
def test_a_malformed_row_is_ignored(directory, line):
    write_rows(directory, {"iteration": 4, "positions": 10}, line)
    assert numbers(directory)["Positions"] == "10"
    assert progress(directory)["share"] == 0.0


def test_a_long_file_is_read_from_its_end(directory):
    rows = [{"iteration": number, "text": "x" * 1000} for number in range(1000)]
    write_rows(directory, *rows)
    assert numbers(directory) == {"Iteration": "999"}


@pytest.mark.parametrize(
    "row",
    [
        '{"iteration": 1' + "0" * 400 + "}",
        '{"seconds": 1' + "0" * 400 + "}",
        '{"seconds": 1e300, "games": 1e300, "scores": {"x": {"score": 1e300}}}',
        '{"matches": {"x": {"not_lost": 1' + "0" * 400 + "}}}",
        "[" * 100_000,
        '{"loss": NaN, "policy_loss": -Infinity, "iteration": []}',
        '{"positions": NaN, "games": Infinity}',
    ],
)
def test_out_of_range_numbers_are_ignored(directory, row):
    write_rows(directory, row)
    json.dumps([progress(directory), numbers(directory)], allow_nan=False)
    assert numbers(directory) == {}


def test_a_name_in_the_metrics_is_shown_shortened(directory):
    write_rows(directory, {"scores": {"\ud800" + "x" * 100_000: {"score": 0.5}}})
    (name,) = numbers(directory)
    assert name.startswith("Score, network alone against \ud800xxx")
    assert len(name) < 200


def test_the_kept_metrics_of_a_run_are_few(directory):
    scores = {f"player{number}": {"score": 0.5} for number in range(3000)}
    write_rows(directory, {"iteration": 3, "scores": scores})
    assert len(numbers(directory)) == 1 + MAX_RATES


@pytest.mark.parametrize("name", ["metrics.jsonl", ".lock"])
def test_pipes_do_not_block(directory, name):
    os.mkfifo(directory / "first" / name)
    assert progress(directory) == {"state": "stopped", "share": 0.0}


def test_metrics_outside_the_run_are_not_read(directory):
    (directory / "rows").write_text('{"seconds": 12}')
    (directory / "first/metrics.jsonl").symlink_to(directory / "rows")
    assert numbers(directory) == {}


def test_a_run_without_a_player_is_found(directory):
    run = only_run(directory)
    assert run.title == "first: Tic Tac Toe"
    assert (run.kind, run.minutes, run.iterations) == (None, 2, None)
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
