import contextlib
import dataclasses
import types

import jax
import pytest
from commands.refusal import assert_refused

from azjax import cli, games
from azjax.commands import train_q as module
from azjax.commands.train_q import parse_q_config
from azjax.networks import QNetworkConfig, init_q_network
from azjax.players.serialization import TrainedQ, save_q_player
from azjax.program import STOPPED
from azjax.training import TrainConfig
from azjax.training.config import QConfig, QEvaluationConfig
from azjax.training.run.directory import open_run_directory


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_run_is_trained_and_printed(is_finished, monkeypatch):
    trained, printed = [], []

    def train(config):
        trained.append(config)
        return types.SimpleNamespace(finished=is_finished)

    monkeypatch.setattr(module, "train_q", train)
    monkeypatch.setattr(module, "print_q_run", lambda _, run: printed.append(run))
    args = ("--iterations", "2", "--run-dir", "runs/none")
    with contextlib.nullcontext() if is_finished else pytest.raises(SystemExit) as end:
        cli.main(["train-q", "tic_tac_toe", *args])
    assert trained == [parsed(*args)]
    assert [run.finished for run in printed] == [is_finished]
    assert end is None or end.value.code == STOPPED


@pytest.fixture
def run(tmp_path):
    """A started run with settings other than the defaults."""
    config = QConfig(
        game="tic_tac_toe",
        run_dir=str(tmp_path / "run"),
        learning_rate=0.5,
        network=QNetworkConfig(hidden=(8, 4)),
        evaluation=QEvaluationConfig(opponents=("random",)),
    )
    with open_run_directory(config) as directory:
        (directory / "checkpoints" / "1").mkdir(parents=True)
    return config


def test_the_player_of_a_run_is_not_evaluated(run, capsys):
    game = games.make(run.game)
    network, params = init_q_network(
        jax.random.key(0), game.observation_shape, game.num_actions, run.network
    )
    trained = TrainedQ(game, network, params, run.network)
    save_q_player(run.directory / "player", trained)
    assert_refused(capsys, "load it as q_learning:RUN", "evaluate", run.run_dir)


def parsed(*args):
    return parse_q_config("tic_tac_toe", args, prog="test")


def test_a_run_continues_with_its_own_settings(run):
    assert parsed("--run-dir", run.run_dir) == run
    longer = dataclasses.replace(run, minutes=None, iterations=5)
    assert parsed("--run-dir", run.run_dir, "--iterations", "5") == longer
    other = dataclasses.replace(run, learning_rate=0.25)
    assert parsed("--run-dir", run.run_dir, "--learning-rate", "0.25") == other


def test_a_new_run_has_the_defaults():
    given = parsed("--run-dir", "runs/none", "--iterations", "3", "--network.hidden=8")
    assert given == QConfig(
        "tic_tac_toe",
        iterations=3,
        run_dir="runs/none",
        network=QNetworkConfig(hidden=(8,)),
    )


def test_a_run_of_alphazero_is_named(tmp_path):
    config = TrainConfig(game="tic_tac_toe", iterations=3, run_dir=str(tmp_path))
    with open_run_directory(config) as directory:
        (directory / "checkpoints" / "1").mkdir(parents=True)
    with pytest.raises(ValueError, match="a run of another algorithm"):
        parsed("--run-dir", str(tmp_path))


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nim"], "unknown game 'nim'; known games: breakthrough, chess"),
        (["chess"], "has 4672 actions; Q-learning with network.form=state"),
        (
            ["tic_tac_toe", "--minutes", "0"],
            "minutes must be a number > 0 and <= 1000000000: 0.0",
        ),
        (["tic_tac_toe", "--network.form", "table"], "'state', 'pair'"),
        (["tic_tac_toe", "--opponent", "god"], "unknown player 'god'"),
        (["tic_tac_toe", "--sweeps", "1"], "did you mean --fit.sweeps?"),
        (
            ["--minutes", "3", "tic_tac_toe"],
            "the game must come first: azjax train-q GAME",
        ),
        (
            ["tic_tac_toe", "--game", "hex:3"],
            "contradicts the game tic_tac_toe",
        ),
        ([], "missing: GAME"),
    ],
)
def test_invalid_arguments_are_explained(args, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(capsys, says, "train-q", *args)
    assert not list(tmp_path.iterdir())


def test_several_processes_are_refused_and_help_explains_it(tmp_path, capsys):
    args = ("tic_tac_toe", "--run-dir", tmp_path / "run", "--distributed")
    assert_refused(capsys, "unknown option --distributed", "train-q", *args)
    assert not (tmp_path / "run").exists()
    with pytest.raises(SystemExit):
        cli.main(["train-q", "tic_tac_toe", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "learns on one device, in one process" in said
