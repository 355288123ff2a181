import dataclasses
import functools
import json
import pathlib
import sys

import pytest
from commands.refusal import assert_refused

from azjax.commands.train import parse_train_config
from azjax.networks import ConvTrunkConfig, NetworkConfig, trunks
from azjax.training import EvaluationConfig, LearnerConfig, TrainConfig, preset
from azjax.training.run.directory import open_run_directory
from azjax.training.run.schedule import new_schedule, write_schedule


def test_parsed_settings_start_from_the_preset():
    config = parse_train_config(
        "tic_tac_toe",
        ["--preset", "accelerator", "--iterations", "4", "--learner.batch-size", "24"],
        prog="test",
    )
    assert (config.minutes, config.iterations) == (None, 4)
    assert isinstance(config.network.trunk, ConvTrunkConfig)
    assert config.learner.batch_size == 24


@pytest.mark.parametrize("option", ["--from", "--initial-player"])
def test_a_run_can_start_from_the_player_of_another_run(option):
    args = [option, "runs/old", "--minutes", "3"]
    config = parse_train_config("tic_tac_toe", args, prog="test")
    assert config.initial_player == "runs/old"


CHANNELS = ("--network.trunk.channels", "8")


@pytest.fixture
def run(tmp_path):
    """A started run with settings other than the defaults."""
    config = TrainConfig(
        game="tic_tac_toe",
        minutes=2.0,
        run_dir=str(tmp_path / "run"),
        learner=LearnerConfig(batch_size=24),
    )
    with open_run_directory(config) as directory:
        (directory / "checkpoints" / "1").mkdir(parents=True)
    write_schedule(directory, new_schedule(("minutes", 2.0)).ending(3, 40))
    return config


def parsed(*args):
    return parse_train_config("tic_tac_toe", args, prog="test")


def test_a_run_continues_with_its_own_settings(run):
    assert parsed("--run-dir", run.run_dir) == run
    longer = dataclasses.replace(run, minutes=5.0)
    assert parsed("--run-dir", run.run_dir, "--minutes", "5") == longer


def test_options_that_reach_outside_are_given_again_to_continue_a_run(run, tmp_path):
    games = ("--learn-from", "elsewhere", "--stored-fraction", "0.5")
    options = ("--from", "pretrained", "--evaluation.opponents", "gtp:engine")
    args = ("--run-dir", str(tmp_path / "b"), "--minutes", "2", *games, *options)
    begun = parsed(*args)
    with open_run_directory(begun) as directory:
        (directory / "checkpoints" / "1").mkdir(parents=True)
    assert parsed(*args) == begun
    with pytest.raises(ValueError, match="give --learn-from again"):
        parsed(*args[:2], *options)
    with pytest.raises(ValueError, match=r"give --evaluation\.opponents again"):
        parsed(*args[:2], *games)
    config = parsed(*args[:2], "--learn_from=elsewhere", *options[2:])
    assert config == dataclasses.replace(begun, initial_player=None)


def test_a_script_has_its_own_settings_outside_of_its_run(tmp_path):
    def parsed(opponent):
        evaluation = EvaluationConfig(opponents=(opponent,))
        settings = functools.partial(preset, "cpu", "hex:3", evaluation=evaluation)
        args = ("--run-dir", str(tmp_path), "--minutes", "2")
        return parse_train_config("hex:3", args, prog="test", settings=settings)

    begun = parsed("gtp:engine")
    with open_run_directory(begun) as directory:
        (directory / "checkpoints" / "1").mkdir(parents=True)
    assert parsed("gtp:engine") == begun
    with pytest.raises(ValueError, match=r"give --evaluation\.opponents again"):
        parsed("gtp:another")


def test_a_given_preset_is_used(run):
    config = parsed("--run-dir", run.run_dir, "--preset", "cpu", "--minutes", "5")
    assert config == preset("cpu", "tic_tac_toe", minutes=5, run_dir=run.run_dir)


def test_damaged_settings_and_those_of_another_algorithm_are_named(run):
    path = pathlib.Path(run.run_dir) / "config.json"
    other = json.dumps(json.loads(path.read_text()) | {"kind": "q_learning"})
    for text, says in (other, "a run of another algorithm"), ("{", "is damaged"):
        path.write_text(text)
        with pytest.raises(ValueError, match=says):
            parsed("--run-dir", run.run_dir)


def test_a_run_that_follows_a_plan_continues_with_its_current_length(run, tmp_path):
    follower = dataclasses.replace(
        run,
        minutes=None,
        iterations=40,
        repeat_schedule=run.run_dir,
        run_dir=str(tmp_path / "b"),
    )
    with open_run_directory(follower) as directory:
        (directory / "checkpoints" / "1").mkdir(parents=True)
    write_schedule(directory, new_schedule(("iterations", 50)))
    again = parsed("--repeat-schedule", run.run_dir, "--run-dir", follower.run_dir)
    assert again == dataclasses.replace(follower, iterations=50)
    longer = parsed("--run-dir", follower.run_dir, "--minutes", "3")
    assert (longer.minutes, longer.iterations, longer.repeat_schedule) == (
        3.0,
        None,
        None,
    )


def test_a_run_is_reproduced_with_its_settings_and_its_plan(run):
    again = parsed("--repeat-schedule", run.run_dir, "--run-dir", "runs/again")
    assert again == dataclasses.replace(
        run,
        minutes=None,
        iterations=40,
        repeat_schedule=run.run_dir,
        run_dir="runs/again",
    )


@pytest.mark.parametrize("name", ["config.json", ""])
def test_a_new_run_takes_the_settings_of_a_file(run, name):
    source = str(pathlib.Path(run.run_dir) / name)
    new = parsed("--config", source, "--run-dir", "runs/none")
    assert new == dataclasses.replace(run, run_dir="runs/none")
    args = ("--iterations", "7", "--learner.batch-size", "32", "--trunk", "conv")
    new = parsed("--config", source, *args)
    assert new == dataclasses.replace(
        run,
        run_dir=None,
        minutes=None,
        iterations=7,
        learner=LearnerConfig(batch_size=32),
        network=NetworkConfig(ConvTrunkConfig()),
    )


def test_settings_of_a_file_do_not_change_with_the_run_that_has_begun(run, tmp_path):
    path = tmp_path / "other.json"
    values = json.loads((pathlib.Path(run.run_dir) / "config.json").read_text())
    path.write_text(json.dumps(values | {"seed": 5}))
    config = parsed("--config", str(path), "--run-dir", run.run_dir)
    with (
        pytest.raises(ValueError, match=r"another configuration .*seed was 0, is 5"),
        open_run_directory(config),
    ):
        pass


@pytest.mark.parametrize(
    ("game", "args", "message"),
    [
        ("tic_tac_toe", "--config RUN --preset cpu", "one of --config and --preset"),
        (
            "tic_tac_toe",
            "--config RUN --repeat-schedule runs/none",
            "one of --repeat-schedule and --config",
        ),
        (
            "tic_tac_toe",
            "--repeat-schedule RUN --run-dir x --minutes 3",
            "has its length",
        ),
        (
            "tic_tac_toe",
            "--repeat-schedule RUN --run-dir x --iterations 3",
            "has its length",
        ),
        ("tic_tac_toe", "--run-dir x --game connect_four", "contradicts the game tic_"),
        ("hex:3", "--repeat-schedule RUN", "is of tic_tac_toe"),
        ("hex:3", "--config RUN", "is of tic_tac_toe, not of hex:3"),
    ],
)
def test_settings_have_one_source_game_and_length(run, game, args, message):
    words = [run.run_dir if word == "RUN" else word for word in args.split()]
    with pytest.raises(ValueError, match=message):
        parse_train_config(game, words, prog="test")


def test_an_experiment_has_its_own_defaults():
    own = TrainConfig(game="tic_tac_toe", minutes=2.0, seed=7)
    config = parse_train_config(
        "tic_tac_toe",
        ["--iterations", "4", "--run-dir", "runs/none"],
        prog="test",
        settings=functools.partial(dataclasses.replace, own),
    )
    assert config == dataclasses.replace(
        own, minutes=None, iterations=4, run_dir="runs/none"
    )


def test_a_trunk_is_chosen_by_its_name_and_has_its_own_settings():
    config = parsed("--run-dir", "runs/none", "--trunk", "conv", *CHANNELS)
    assert config.network.trunk == ConvTrunkConfig(channels=8)
    with pytest.raises(
        ValueError, match="unknown trunk 'cnn'; known trunks are conv, dense"
    ):
        parsed("--run-dir", "runs/none", "--trunk", "cnn")
    with pytest.raises(ValueError, match=r"unknown option --network.trunk.channels"):
        parsed("--run-dir", "runs/none", *CHANNELS)


OWN_TRUNK = """
import dataclasses
from azjax import networks


@networks.register_trunk("one_layer")
@dataclasses.dataclass(frozen=True)
class OneLayerConfig(networks.TrunkConfig):
    width: int = 64

    def __post_init__(self):
        if self.width < 1:
            raise ValueError(f"network.trunk.width must be >= 1: {self.width}")

    def make(self, observation_shape, *, dtype, rngs):
        raise NotImplementedError


MODULES = networks.CustomModules()
"""


@pytest.fixture
def own_trunk(tmp_path, monkeypatch):
    """A user's module in the working directory, which registers a trunk."""
    (tmp_path / "own_trunk.py").write_text(OWN_TRUNK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(trunks.TRUNKS, "_classes", {**trunks.TRUNKS._classes})
    yield ("--modules", "own_trunk:MODULES", "--trunk", "one_layer")
    sys.modules.pop("own_trunk", None)


def test_a_wrong_size_of_a_custom_trunk_is_refused_in_one_line(own_trunk, capsys):
    message = "network.trunk.width must be >= 1: 0"
    args = ("tic_tac_toe", *own_trunk, "--network.trunk.width", "0")
    assert_refused(capsys, message, "train", *args)
