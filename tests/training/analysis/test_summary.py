import dataclasses
import io
import sys

import jax
import numpy as np
import pytest
from compilations import compilations
from compiled_games import compiled
from rich.console import Console
from training.run import test_display
from training.saved_runs import save_run
from untrained import untrained

from azjax import games
from azjax.networks import (
    DenseTrunkConfig,
    NetworkConfig,
    QNetworkConfig,
    init_q_network,
)
from azjax.players import Choice, NetworkPlayer, TrainedPlayer, TrainedQ
from azjax.search import GumbelConfig
from azjax.training import EvaluationConfig, Run
from azjax.training.analysis.summary import print_q_run, print_run, print_summary
from azjax.training.evaluation import Evaluator

GAME = compiled("tic_tac_toe")
POLICY = np.full((1, 9), 0.05, np.float32)
POLICY[0, 4] = 0.6
CHOICE = Choice(np.array([4]), np.array(POLICY), np.array([0.25]))


def evaluation_row(iteration, **rates):
    return test_display.evaluation_row(iteration, **rates) | {
        "eligible_share": 0.995 if iteration else None,
    }


def summary(run_dir, **changes):
    file = io.StringIO()
    settings = {
        "game": GAME,
        "run_dir": run_dir,
        "first": evaluation_row(0),
        "last": evaluation_row(2, network=0.1),
        "choice": CHOICE,
        "commands": {"Play against it": "play nim", "Measure it": "evaluate RUN"},
        "method": "by self-play",
    }
    print_summary(Console(file=file, width=250), **settings | changes)
    return file.getvalue()


def test_the_summary_prints_results_moves_and_commands(tmp_path):
    text = summary(tmp_path)
    for part in (
        "1 min 00 s",
        "80 games, 2,000 positions",
        "99.5% of the positions  ",
        "40.0% (35.0 to 45.0) → 10.0% (5.0 to 15.0)",
        "score, network alone against random",
        "75.0% (70.0 to 80.0) → 75.0% (70.0 to 80.0)",
        "+0.25",
        "Play against it:  azjax play nim",
        "Measure it:  azjax evaluate RUN",
        str(tmp_path / "plots" / "learning.png"),
    ):
        assert part in text
    assert text.count("60.0%") == 1


def test_the_summary_shows_the_most_probable_of_many_moves(tmp_path):
    policy = np.full((1, 16), 0.05, np.float32)
    policy[0, 4] = 0.25
    choice = Choice(np.array([4]), np.array(policy), np.array([0.25]))
    text = summary(tmp_path, first=None, game=compiled("hex:4"), choice=choice)
    assert "6 more" in text
    assert "30.0%" in text  # six moves of 5%
    assert "→" not in text


def test_the_summary_shows_the_position_after_the_likeliest_first_outcome(tmp_path):
    policy = np.zeros((1, 16), np.float32)
    policy[0, 2] = 1
    choice = Choice(np.array([2]), np.array(policy), np.array([0.25]))
    text = summary(tmp_path, first=None, game=compiled("ur:2"), choice=choice)
    assert "The initial position after roll 2 (value:" in text
    assert "c1   100.0%" in text


class Nim(games.TicTacToe):
    name = "nim"


def test_the_summary_of_a_custom_game_names_the_running_program(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "nim.py", raising=False)
    monkeypatch.setattr(sys, "argv", ["nim.py", "train", "nim"])
    text = summary(tmp_path, game=compiled(Nim()))
    assert "python nim.py play nim" in text
    assert "python nim.py evaluate RUN" in text


def summary_of(print_run, player, run_dir):
    file = io.StringIO()
    run = Run(run_dir, player, True, 10, evaluation_row(0), evaluation_row(2))
    print_run(Console(file=file, width=250), run)
    return file.getvalue()


def trained_player(width=8, **changes):
    trunk = DenseTrunkConfig(width=width, num_blocks=1, stem_channels=8, window=3)
    config = NetworkConfig(trunk=trunk)
    network, variables = untrained(GAME, config)
    return TrainedPlayer(
        GAME, network, variables, config, GumbelConfig(), seed=0, **changes
    )


@pytest.mark.parametrize(
    ("own", "parts"), [(False, ""), (True, " --modules MODULE:NAME")]
)
def test_print_run_prints_commands(tmp_path, own, parts):
    trained = trained_player(has_custom_modules=own)
    run_dir = tmp_path / "my run"
    save_run(run_dir)
    text = summary_of(print_run, trained, run_dir)
    assert f"azjax play tic_tac_toe --opponent 'alphazero:{run_dir}'{parts}\n" in text
    assert f"azjax evaluate '{run_dir}'{parts}\n" in text


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, "by self-play"),
        ({"learn_from": ("a",)}, "from stored games"),
        ({"learn_from": ("a",), "stored_fraction": 0.5}, "by self-play"),
    ],
)
def test_print_run_says_how_it_learned(tmp_path, settings, method):
    save_run(tmp_path / "run", **settings)
    text = summary_of(print_run, trained_player(), tmp_path / "run")
    assert f"learned {method}" in text


def test_evaluations_and_the_summary_share_programs(tmp_path):
    trained = trained_player(width=4)  # no other test has its programs
    # As in a run: on a device that was chosen.
    variables = jax.device_put(trained.variables, jax.devices()[0])
    trained = dataclasses.replace(trained, variables=variables)
    network = NetworkPlayer(GAME, trained.network, variables)
    save_run(tmp_path)
    evaluator = Evaluator(GAME, EvaluationConfig(num_positions=1), ["random"])
    with compilations() as names:
        row = evaluator.evaluate({"network": network})
        run = Run(tmp_path, trained, True, 10, None, {**evaluation_row(2), **row})
        print_run(Console(file=io.StringIO()), run)
    # The network in batches of two sizes, and the random player.
    assert names.count("jit(_choose_with_carry)") == 3
    assert names.count("jit(_positions)") == 1


def test_print_q_run_prints_commands(tmp_path):
    config = QNetworkConfig(hidden=(8,))
    network, params = init_q_network(
        jax.random.key(0), GAME.observation_shape, 9, config
    )
    trained = TrainedQ(GAME, network, params, config)
    text = summary_of(print_q_run, trained, tmp_path)
    assert "learned by Q-learning" in text
    assert f"azjax play tic_tac_toe --opponent q_learning:{tmp_path}\n" in text
    assert f"azjax arena tic_tac_toe random q_learning:{tmp_path}\n" in text
