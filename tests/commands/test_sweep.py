import json
import math
import shutil
import types

import pytest
from commands.refusal import assert_refused
from training.saved_runs import evaluation_row

from azjax import cli
from azjax.commands import sweep as sweep_module
from azjax.training.run.directory import open_run_directory
from azjax.training.run.metrics import check_finite
from azjax.training.run.optimizer_identity import DEFAULT
from azjax.training.run.schedule import new_schedule, write_schedule


def sweep(tmp_path, text, *args):
    """Runs a sweep with this file; returns the exit status."""
    path = tmp_path / "rates.toml"
    path.write_text(text)
    try:
        cli.main(["sweep", "tic_tac_toe", str(path), *args])
    except SystemExit as end:
        return end.code
    return 0


GRID = """
iterations = 4
learner.learning_rate = [0.1, 0.2]
seed = [0, 1]
"""
NAMES = [f"learning-rate={rate},seed={seed}" for rate in (0.1, 0.2) for seed in (0, 1)]


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Writes the files of a finished run in place of training; returns the names."""
    names = []
    monkeypatch.chdir(tmp_path)

    def train(config, modules):
        name = config.directory.name
        names.append(name)
        loss = math.nan if name in train.failing else 1.5
        check_finite({"policy_loss": loss}, 1, config.directory)
        row = evaluation_row(4, mistakes=config.learner.learning_rate)
        with open_run_directory(config, DEFAULT) as directory:
            (directory / "metrics.jsonl").write_text(json.dumps(row))
            (directory / "checkpoints" / "4").mkdir(parents=True)
            length = 5 if name in train.stopped else 4
            write_schedule(directory, new_schedule(("iterations", length)))
        return types.SimpleNamespace(finished=name not in train.stopped)

    train.failing, train.stopped = set(), set()
    monkeypatch.setattr(sweep_module, "train", train)
    return types.SimpleNamespace(names=names, train=train)


def directories(tmp_path):
    return sorted(path.name for path in (tmp_path / "runs").glob("*/*"))


def test_all_runs_are_trained_once_and_compared(tmp_path, trained, capsys):
    assert sweep(tmp_path, GRID) == 0
    assert trained.names == NAMES
    assert directories(tmp_path) == NAMES
    out, err = capsys.readouterr()
    assert "Tic Tac Toe: 4 runs" in out
    assert "4  learning-rate=0.2,seed=1" in out
    assert out.count("rate=") == out.count("seed") == 4
    assert "(15.0 to 25.0)" in out
    assert "run 4 of 4, runs/tic_tac_toe_rates/learning-rate=0.2,seed=1: train" in err
    # Nothing is trained again, and only the new values of a longer list.
    assert sweep(tmp_path, GRID.replace("[0, 1]", "[0, 1, 2]")) == 0
    new = {f"learning-rate={rate},seed=2" for rate in (0.1, 0.2)}
    assert set(trained.names[4:]) == new
    assert len(trained.names) == 6
    assert "Tic Tac Toe: 6 runs" in capsys.readouterr().out
    # Runs of other settings are refused before the first run.
    assert sweep(tmp_path, f"learner.batch_size = 24\n{GRID}") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "another configuration (learner.batch_size was 256, is 24)" in line
    assert len(trained.names) == 6


def test_a_stopped_sweep_continues_with_the_same_command(tmp_path, trained):
    trained.train.stopped.add(NAMES[1])
    assert sweep(tmp_path, GRID) == 75
    assert trained.names == NAMES[:2]
    trained.train.stopped.clear()
    shutil.rmtree(tmp_path / "runs" / "tic_tac_toe_rates" / NAMES[1])
    assert sweep(tmp_path, GRID) == 0
    assert trained.names == [*NAMES[:2], *NAMES[1:]]


def test_a_failed_run_is_reported_and_the_others_are_trained(tmp_path, trained, capsys):
    trained.train.failing.add(NAMES[0])
    assert sweep(tmp_path, GRID) == 1
    assert trained.names == NAMES
    out, err = capsys.readouterr()
    assert "Tic Tac Toe: 3 runs" in out
    failed = f"failed: runs/tic_tac_toe_rates/{NAMES[0]}: policy_loss is nan"
    assert failed in out.replace("\n", " ")
    assert "policy_loss is nan" in err


def test_a_bug_is_not_reported_as_a_failed_run(tmp_path, trained, monkeypatch):
    def broken(config, modules):
        raise KeyError("seconds")

    monkeypatch.setattr(sweep_module, "train", broken)
    with pytest.raises(KeyError):
        sweep(tmp_path, GRID)


def test_the_directory_can_be_chosen(tmp_path, trained):
    assert sweep(tmp_path, "seed = 3\niterations = 4", "--directory", "here") == 0
    assert (tmp_path / "here" / "run" / "config.json").exists()


def test_a_file_of_ones_own_may_reach_outside_of_the_runs(tmp_path, trained):
    text = "iterations = 4\nlearn_from = 'elsewhere'\nreport.sinks = 'wandb'"
    assert sweep(tmp_path, text, "--allow", "learn_from") == 2
    assert not trained.names
    text = "iterations = 4\nlearn_from = 'elsewhere'"
    assert sweep(tmp_path, text, "--allow", "learn_from") == 0
    assert trained.names == ["run"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = [", "rates.toml is no TOML file"),
        ("learner.batch_sice = [1, 2]", "unknown option --learner.batch-sice"),
        ("seed = [0, -1]", "seed must be an int from 0"),
        ("seed = [0]\nminutes = -1", "minutes must be a number > 0"),
        ("modules = 'os:path'", "unknown option --modules"),
        ("report.sinks = ['mlflov', 'wandb']", "mlflov"),
        ("iterations = 4\nreport.sinks = 'wandb'", "give --allow report.sinks"),
        (
            "iterations = 4\nevaluation.opponents = 'gtp:touch started'",
            "give --allow evaluation.opponents if the file is your own",
        ),
        ("repeat_schedule = 'hf://someone/else'", "give --allow repeat_schedule"),
    ],
)
def test_a_wrong_file_ends_with_one_line_before_the_first_run(
    tmp_path, trained, capsys, text, message
):
    assert sweep(tmp_path, text) == 2
    out, err = capsys.readouterr()
    [line] = err.splitlines()
    assert message in line
    assert not out
    assert not trained.names
    assert not (tmp_path / "runs").exists()


def test_a_file_that_does_not_exist_is_named(tmp_path, capsys):
    message = "missing.toml: No such file"
    assert_refused(capsys, message, "sweep", "tic_tac_toe", "missing.toml")


def test_a_directory_with_something_else_is_refused_before_the_first_run(
    tmp_path, trained, capsys
):
    place = tmp_path / "runs" / "tic_tac_toe_rates"
    (place / NAMES[3]).mkdir(parents=True)
    (place / NAMES[3] / "notes.txt").write_text("mine")
    assert sweep(tmp_path, GRID) == 2
    assert "is not empty and not a run" in capsys.readouterr().err
    assert not trained.names
    assert directories(tmp_path) == NAMES[3:]
