import dataclasses
import json

import pytest

from azjax.networks import QNetworkConfig
from azjax.training import (
    TrainConfig,
    load_config,
    preset,
    repeated_config,
)
from azjax.training.config import QConfig, QEvaluationConfig, ReportConfig
from azjax.training.run.directory import open_run_directory
from azjax.training.run.saved_config import config_from_file, load_settings
from azjax.training.run.schedule import new_schedule, write_schedule


def test_load_config_returns_the_initial_settings(tmp_path):
    config = preset("cpu", "tic_tac_toe", minutes=2, run_dir=str(tmp_path / "run"))
    with open_run_directory(config, "adamw", hooks=("loss",)):
        pass
    assert load_config(tmp_path / "run") == config


def test_the_newest_length_of_a_run_that_was_killed_is_in_its_plan(tmp_path):
    config = preset("cpu", "tic_tac_toe", minutes=2, run_dir=str(tmp_path / "run"))
    with open_run_directory(config) as directory:
        write_schedule(directory, new_schedule(("minutes", 4.0)))
    assert load_config(directory) == dataclasses.replace(config, minutes=4.0)


def test_the_settings_of_a_run_of_q_learning_are_read(tmp_path):
    config = QConfig(
        game="tic_tac_toe",
        run_dir=str(tmp_path / "run"),
        network=QNetworkConfig(hidden=(8, 4)),
        evaluation=QEvaluationConfig(opponents=("random",)),
    )
    with open_run_directory(config) as directory:
        write_schedule(directory, new_schedule(("minutes", 4.0)))
    assert load_settings(QConfig, directory) == dataclasses.replace(config, minutes=4.0)


def test_a_directory_without_a_run_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"no run in {tmp_path}"):
        load_config(tmp_path)


def test_a_run_of_another_algorithm_raises(tmp_path):
    configs = TrainConfig(iterations=1), QConfig("tic_tac_toe")
    for config, kind in zip(configs, (QConfig, TrainConfig), strict=True):
        run_dir = tmp_path / type(config).__name__
        with open_run_directory(dataclasses.replace(config, run_dir=str(run_dir))):
            pass
        with pytest.raises(
            ValueError, match=f"{run_dir} holds a run of another algorithm"
        ):
            load_settings(kind, run_dir)


def test_a_run_is_repeated_to_the_end_of_its_plan(tmp_path):
    config = preset("cpu", "tic_tac_toe", minutes=2, run_dir=str(tmp_path / "run"))
    with open_run_directory(config) as directory:
        write_schedule(directory, new_schedule(("minutes", 2.0)).ending(3, 40))
    again = repeated_config(directory, run_dir="runs/again", notes="again")
    assert (again.minutes, again.iterations) == (None, 40)
    assert again.repeat_schedule == str(directory)
    assert (again.run_dir, again.notes) == ("runs/again", "again")
    assert again.self_play == config.self_play


def test_a_plan_needs_its_number_of_iterations():
    with pytest.raises(
        ValueError, match="iterations must be given with repeat_schedule"
    ):
        TrainConfig(game="tic_tac_toe", minutes=2.0, repeat_schedule="runs/a")


def test_a_plan_and_an_optimizer_are_not_settings_of_a_new_run(tmp_path):
    config = TrainConfig(game="tic_tac_toe", iterations=4, run_dir=str(tmp_path / "a"))
    with open_run_directory(config, {"state": []}, hooks=("loss",)) as directory:
        write_schedule(directory, new_schedule(("iterations", 9)))
    path = directory / "config.json"
    content = json.loads(path.read_text()) | {"repeat_schedule": "runs/old"}
    path.write_text(json.dumps(content))
    lines = []
    for source in (directory, path):
        new = config_from_file(source, report=lines.append)
        assert new == dataclasses.replace(config, run_dir=None)
    repeated_config(directory, report=lines.append)
    assert len(lines) == 3
    assert all(" was given loss, optimizer: functions of Python" in x for x in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no settings in .*new.json: No such file"),
        ("{", "new.json is damaged: [^;]*$"),
        ("[]", "new.json cannot be read: it is not a JSON object"),
        ('{"game": "hex"}', "new.json cannot be read: its format is None"),
        ('{"format": 9}', "format is 9, and this version of azjax reads format 10$"),
        ('{"format": 10, "kind": "q_learning"}', "are of another algorithm"),
        ('{"format": 10, "sead": 1}', "invalid settings in .*unknown setting sead"),
        ('{"format": 10, "seed": -1}', "invalid settings in .*exactly one of minutes"),
    ],
)
def test_a_file_without_settings_is_named(tmp_path, text, message):
    path = tmp_path / "new.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        config_from_file(path)


PROGRAM, URL = "gtp:sh -c 'touch started'", "alphazero:hf://someone/else"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("learn_from", {"learn_from": ["elsewhere"], "stored_fraction": 0.5}),
        ("initial_player", {"initial_player": "hf://someone/else"}),
        ("evaluation.opponents", {"evaluation": {"opponents": ["random", PROGRAM]}}),
        ("evaluation.opponents", {"evaluation": {"opponents": [URL]}}),
        ("evaluation.opponents", {"evaluation": {"opponents": ["gtp:pretrained"]}}),
    ],
)
def test_a_file_decides_nothing_outside_its_run(tmp_path, name, values):
    config = preset("cpu", "tic_tac_toe", minutes=2, run_dir=str(tmp_path))
    with open_run_directory(config) as directory:
        write_schedule(directory, new_schedule(("iterations", 4)))
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    for load in (load_config, repeated_config):
        with pytest.raises(ValueError, match=f"{name} in .* reaches outside of the"):
            load(directory)
    own = load_config(directory, allowed=[name])
    assert own != config
    again = repeated_config(directory, allowed=[name], run_dir=str(tmp_path))
    assert dataclasses.replace(again, repeat_schedule=None) == own
    new = config_from_file(directory, allowed=[name], run_dir=str(tmp_path))
    assert dataclasses.replace(new, minutes=None, iterations=4) == own


def test_a_file_sends_no_metrics_and_a_new_run_reads_nothing(tmp_path):
    settings = preset("cpu", "tic_tac_toe", minutes=2, run_dir=str(tmp_path))
    sent = dataclasses.replace(settings, report=ReportConfig(sinks=("wandb",)))
    with open_run_directory(sent) as directory:
        write_schedule(directory, new_schedule(("minutes", 2.0)).ending(3, 40))
    lines = []
    assert load_config(directory, report=lines.append) == settings
    assert repeated_config(directory, report=lines.append).report == ReportConfig()
    assert lines == ["metrics go to wandb only with --report.sinks wandb"] * 2
    assert load_config(directory, allowed=["report.sinks"]) == sent
    path = directory / "config.json"
    outside = {"initial_player": "pretrained", "learn_from": ["a"]}
    path.write_text(json.dumps(json.loads(path.read_text()) | outside))
    lines.clear()
    new = config_from_file(directory, report=lines.append, run_dir=str(tmp_path))
    assert new == settings
    (line,) = lines
    assert "only from options: initial_player, learn_from, report" in line


def test_the_initial_player_is_not_needed_any_more_in_a_run_that_has_begun(tmp_path):
    config = preset("cpu", "tic_tac_toe", minutes=2, run_dir=str(tmp_path))
    with open_run_directory(dataclasses.replace(config, initial_player="pretrained")):
        (tmp_path / "checkpoints" / "1").mkdir(parents=True)
    assert load_config(tmp_path) == config


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("opponent", {"opponent": URL}),
        (
            "evaluation.opponents",
            {"evaluation": QEvaluationConfig(opponents=(PROGRAM,))},
        ),
    ],
)
def test_a_file_of_q_learning_starts_and_loads_no_players(tmp_path, name, values):
    config = QConfig("tic_tac_toe", run_dir=str(tmp_path), **values)
    with open_run_directory(config) as directory:
        pass
    with pytest.raises(ValueError, match=f"{name} in .* reaches outside of the run"):
        load_settings(QConfig, directory)
    assert (
        load_settings(QConfig, directory, allowed=[name]).opponents == config.opponents
    )
