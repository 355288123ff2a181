import errno
import io
import json
import re
import struct

import pytest
from rich.console import Console
from tensorboardX.proto import event_pb2
from training.saved_runs import counters, with_interval

from azjax.training.analysis import plots
from azjax.training.config import TrainConfig
from azjax.training.run import display
from azjax.training.run.directory import WorkingDirectory
from azjax.training.run.display import Reporter, duration

CONFIG = TrainConfig(game="tic_tac_toe", iterations=10)
DRAW_LEARNING = plots.draw_learning
pytestmark = pytest.mark.usefixtures("quick_plots")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class FullDisk(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


def iteration_row(iteration, loss: float | None = 1.25):
    return counters(iteration) | {
        "positions_per_second": 123.4,
        "simulations": 16,
        "policy_loss": loss,
        "value_loss": loss,
        "gradient_norm": loss,
        "learning_rate": 2e-3,
        "policy_entropy": 1.0,
        "policy_gain": 0.1,
        "value_gain": 0.1,
        "first_player_score": 0.2,
        "self_play_seconds": 1.0,
        "update_seconds": 0.5,
    }


def evaluation_row(iteration, network=0.4, search=0.2):
    mistakes = with_interval("network_mistakes", network)
    mistakes |= with_interval("search_mistakes", search)
    scores = {"scores": {"random": with_interval("score", 0.75)}}
    return counters(iteration) | mistakes | scores


def start(iteration, *, evaluated):
    """Returns the progress that a checkpoint contains."""
    return counters(iteration) | {"last": evaluation_row(evaluated)}


def open_reporter(run_dir, start=None, file=None, config=CONFIG):
    console = Console(file=file or io.StringIO(), width=90)
    return Reporter(WorkingDirectory(run_dir), config, start, console)


def report(run_dir, rows, start=None, file=None, config=CONFIG):
    with open_reporter(run_dir, start, file, config) as reporter:
        for row in rows:
            record = reporter.iteration if "simulations" in row else reporter.evaluation
            record(row)
    return reporter


def events(path):
    """Reads the records of a TensorBoard event file."""
    content, found = path.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        found.append(vars(event_pb2)["Event"].FromString(content[12 : 12 + length]))
        content = content[16 + length :]
    return found


ROWS = [evaluation_row(0), iteration_row(1), iteration_row(2), evaluation_row(2)]


def test_metrics_are_on_the_disk_after_each_call(tmp_path):
    with open_reporter(tmp_path) as reporter:
        reporter.iteration(iteration_row(1))
        lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
        assert json.loads(lines[-1]) == {"kind": "iteration", **iteration_row(1)}
        reporter.evaluation(evaluation_row(1))
        lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
        assert json.loads(lines[-1]) == {"kind": "evaluation", **evaluation_row(1)}


def test_a_killed_and_continued_run_has_the_same_metrics(tmp_path):
    report(tmp_path / "whole", ROWS)
    report(tmp_path / "killed", ROWS[:3])
    metrics = tmp_path / "killed" / "metrics.jsonl"
    with metrics.open("a") as file:
        file.write('{"kind": "evalua')
    report(tmp_path / "killed", ROWS[2:], start=start(1, evaluated=0))
    assert metrics.read_text() == (tmp_path / "whole" / "metrics.jsonl").read_text()


def test_rows_that_the_checkpoint_lacks_are_dropped(tmp_path):
    def kinds():
        lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["kind"] for line in lines]

    report(tmp_path, ROWS)
    reporter = report(tmp_path, [], start=start(2, evaluated=2))
    assert reporter.first == {"kind": "evaluation", **evaluation_row(0)}
    assert reporter.last == {"kind": "evaluation", **evaluation_row(2)}
    report(tmp_path, ROWS[3:], start=start(2, evaluated=0))
    assert kinds() == ["evaluation", "iteration", "iteration", "evaluation"]
    report(tmp_path, ROWS[:1])  # without a checkpoint
    assert kinds() == ["evaluation"]


def test_events_are_numbered_by_positions_and_later_ones_are_purged(tmp_path):
    report(tmp_path, [evaluation_row(0), iteration_row(1, loss=None), iteration_row(2)])
    (first,) = (tmp_path / "tensorboard").iterdir()
    report(tmp_path, [iteration_row(2)], start=start(1, evaluated=0))
    _, newest = sorted((tmp_path / "tensorboard").iterdir())
    values = {
        (event.step, value.tag): value.simple_value
        for event in events(first)
        for value in event.summary.value
    }
    assert values[0, "mistakes/network"] == pytest.approx(0.4)
    assert values[0, "score/random"] == pytest.approx(0.75)
    assert values[1000, "speed/positions_per_second"] == pytest.approx(123.4)
    assert (1000, "loss/policy") not in values
    assert values[2000, "loss/policy"] == pytest.approx(1.25)
    assert events(newest)[1].session_log.status == 1  # START
    assert events(newest)[1].step == 1001


def test_an_evaluation_draws_the_plot(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "draw_learning", DRAW_LEARNING)
    report(tmp_path, ROWS[:1])
    assert (tmp_path / "plots" / "learning.png").stat().st_size > 1000


def test_plain_output_is_lines_without_control_codes(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # does not make a pipe a terminal
    file = io.StringIO()
    report(tmp_path, ROWS, file=file)
    start, evaluation, iteration, last = file.getvalue().splitlines()
    assert start == f"train tic_tac_toe for 10 iterations in {tmp_path}"
    assert evaluation == "[0 s] mistakes: network alone 40.0%, with search 20.0%"
    assert iteration.startswith("[30 s] iteration 1, policy loss 1.250, ")
    assert last.startswith("[1 min 00 s] mistakes: ")
    assert "\x1b" not in file.getvalue()


def test_the_lost_win_probability_is_shown_in_place_of_mistakes(tmp_path):
    file, name = io.StringIO(), "network_win_probability_lost"
    report(tmp_path, [counters(0) | with_interval(name, 0.0625)], file=file)
    evaluation = file.getvalue().splitlines()[1]
    assert evaluation == "[0 s] win probability lost: network alone 6.25%"
    (found,) = (tmp_path / "tensorboard").iterdir()
    tags = {value.tag for value in events(found)[-1].summary.value}
    assert "win_probability_lost/network" in tags


def test_plain_output_skips_most_iterations(tmp_path, monkeypatch):
    few, many = io.StringIO(), io.StringIO()
    rows = [iteration_row(iteration) for iteration in range(1, 5)]
    report(tmp_path, rows, file=few)
    monkeypatch.setattr(display, "PLAIN_INTERVAL", 0.0)
    report(tmp_path, rows, file=many)
    assert few.getvalue().count("iteration ") == 1
    assert many.getvalue().count("iteration ") == 4


@pytest.mark.parametrize("file_class", [io.StringIO, Terminal])
def test_a_compilation_is_reported_immediately_and_once(
    tmp_path, monkeypatch, file_class
):
    monkeypatch.setenv("TERM", "xterm")
    file = file_class()
    with open_reporter(tmp_path, file=file) as reporter:
        reporter.compiling("self-play")
        assert "compiling self-play" in file.getvalue()
        reporter.iteration(iteration_row(1))
        seen = len(file.getvalue())
        reporter.compiling("self-play")
        assert "compiling self-play" not in file.getvalue()[seen:]


@pytest.mark.parametrize("width", [200, 80, 30, 5])
def test_the_display_has_few_lines_at_any_terminal_width(tmp_path, monkeypatch, width):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    console = Console(file=file, width=width)
    with Reporter(WorkingDirectory(tmp_path), CONFIG, None, console) as reporter:
        reporter.message("hello")
        reporter.evaluation(ROWS[0])
        reporter.iteration(ROWS[1])
        reporter.iteration(ROWS[2])
        reporter.evaluation(evaluation_row(2, network=0.1))
        assert len(console.render_lines(reporter._draw())) == 4
    assert "hello" in file.getvalue()
    if width >= 80:
        assert "network alone \x1b[1m10.0%\x1b[0m\x1b[2m (was 40.0%)" in file.getvalue()
        assert "20%" in file.getvalue()
        # On a loaded machine this can have taken some time.
        assert re.search(r"(4:00|3:[345]\d) left", file.getvalue())


@pytest.mark.parametrize("file_class", [io.StringIO, Terminal])
def test_the_last_message_is_below_the_display(tmp_path, monkeypatch, file_class):
    monkeypatch.setenv("TERM", "xterm")
    file = file_class()
    with open_reporter(tmp_path, file=file) as reporter:
        reporter.iteration(iteration_row(1))
        reporter.last_message("stopped; saved")
        reporter.evaluation(evaluation_row(1))
    assert file.getvalue().endswith("stopped; saved\n")


def test_a_row_shows_its_losses_and_numbers(tmp_path):
    row = counters(1) | {
        "positions_per_second": 123.4,
        "value_loss": 0.5,
        "ownership_loss": 0.000254,
        "epsilon": 0.2,
    }
    evaluation = counters(1) | {"network_mistakes": 0.125, "scores": {}}
    for rate, shown in ((2e-3, ", rate 0.002"), (None, "")):
        file = io.StringIO()
        with open_reporter(tmp_path, file=file) as reporter:
            reporter.iteration(row | {"learning_rate": rate})
            reporter.evaluation(evaluation)
        _, iteration, mistakes = file.getvalue().splitlines()
        assert iteration == (
            f"[30 s] iteration 1, value loss 0.500, ownership loss 0.00025{shown}, 40 "
            "games, 1,000 positions, 123 per second, 20% random moves"
        )
        assert mistakes == "[30 s] mistakes: network alone 12.5%"


def test_a_disk_error_is_reported_once_and_loses_no_metrics(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(display, "plot_learning", fail)
    monkeypatch.setattr(display.EventFile, "write", fail)
    file = io.StringIO()
    metrics, away = tmp_path / "metrics.jsonl", tmp_path / "away"
    with open_reporter(tmp_path, file=file) as reporter:
        reporter.evaluation(evaluation_row(0))
        metrics.rename(away)
        metrics.mkdir()
        reporter.iteration(iteration_row(1))
        reporter.evaluation(evaluation_row(1))
        metrics.rmdir()
        away.rename(metrics)
        with metrics.open("a") as partial:
            partial.write('{"kind": "itera')
        reporter.iteration(iteration_row(2))
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [0, 1, 1, 2]
    for what in ("the plot", "TensorBoard events", "metrics"):
        assert file.getvalue().count(f"writing {what} failed") == 1


def test_a_first_evaluation_that_cannot_be_written_does_not_end_the_run(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    with open_reporter(tmp_path) as reporter:
        metrics.unlink(missing_ok=True)
        metrics.mkdir()
        reporter.evaluation(evaluation_row(0))
    assert reporter.first == evaluation_row(0)


def test_an_output_that_cannot_be_written_does_not_end_the_run(tmp_path):
    report(tmp_path, ROWS, file=FullDisk())
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == len(ROWS)


def test_programming_errors_are_not_hidden(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyError("seconds")

    monkeypatch.setattr(display, "plot_learning", fail)
    with pytest.raises(KeyError):
        report(tmp_path, ROWS[:1])


def test_durations_are_readable():
    found = [duration(seconds) for seconds in (0, 59.7, 444, 7500)]
    assert found == ["0 s", "1 min 00 s", "7 min 24 s", "2 h 05 min"]
