import dataclasses
import json
import math
from pathlib import Path

import pytest

from azjax.networks import QNetworkConfig
from azjax.training.q_config import FitConfig, QConfig, QEvaluationConfig

PAIR = QNetworkConfig(form="pair")


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (QConfig, {"game": "nim"}, "unknown game 'nim'"),
        (QConfig, {"minutes": 0.0}, "minutes must be a number > 0 and <= 10+: 0.0"),
        (QConfig, {"minutes": math.inf}, "minutes must be a number > 0 .* 10+: inf"),
        (QConfig, {"iterations": 0}, "iterations must be an int from 1 to 10+: 0"),
        (QConfig, {"minutes": 1.0, "iterations": 1}, "only one of minutes and iterat"),
        (QConfig, {"seed": -1}, "seed must be an int from 0"),
        (QConfig, {"learning": "both"}, "learning must be offline or online: 'both'"),
        (QConfig, {"games": 0}, "games must be an int >= 1: 0"),
        (QConfig, {"moves": 0}, "moves must be an int >= 1: 0"),
        (QConfig, {"final_epsilon": 1.5}, "final_epsilon must .* from 0 to 1: 1.5"),
        (QConfig, {"learning_rate": 0.0}, "learning_rate must be a finite .* > 0: 0.0"),
        (QConfig, {"games": 2, "moves": 2}, "fit.batch_size must be at most .* 4: 256"),
        (FitConfig, {"sweeps": 0}, "fit.sweeps must be an int >= 1: 0"),
        (FitConfig, {"batch_size": 0}, "fit.batch_size must be an int >= 1: 0"),
        (FitConfig, {"max_epochs": 0}, "fit.max_epochs must be an int >= 1: 0"),
        (FitConfig, {"low_loss": -1.0}, "fit.low_loss must be a finite .* >= 0: -1.0"),
        (
            QEvaluationConfig,
            {"opponents": ("random", "random")},
            r"evaluation\.opponents has 'random' twice",
        ),
    ],
)
def test_a_wrong_value_is_named(kind, settings, message):
    if kind is QConfig:
        settings = {"game": "tic_tac_toe"} | settings
    with pytest.raises(ValueError, match=message):
        kind(**settings)


@pytest.mark.parametrize(
    ("game", "network", "message"),
    [
        ("chess", PAIR, "chess.* has 4672 actions; .* at most 128$"),
        ("chess", QNetworkConfig(), "chess.* has 4672 actions; .* at most 512$"),
        ("go:19", PAIR, "at most 128; network.form=state takes more"),
    ],
)
def test_large_games_are_refused(game, network, message):
    with pytest.raises(ValueError, match=message):
        QConfig(game, network=network)


def test_a_run_takes_two_minutes_by_default_and_learns_online_from_few_moves():
    assert QConfig("tic_tac_toe").minutes == 2
    assert QConfig("tic_tac_toe", iterations=8).minutes is None
    assert QConfig("tic_tac_toe", learning="online", games=1, moves=2).batch_moves == 2


def test_epsilon_decreases_linearly_and_then_is_constant():
    config = QConfig(
        "tic_tac_toe", first_epsilon=0.9, final_epsilon=0.1, epsilon_fall=0.5
    )
    found = [config.epsilon(share) for share in (0, 0.25, 0.5, 1)]
    assert found == pytest.approx([0.9, 0.5, 0.1, 0.1])
    at_once = dataclasses.replace(config, epsilon_fall=0.0)
    assert at_once.epsilon(0) == pytest.approx(0.1)


def test_minimax_searches_short_games_completely():
    assert QConfig("tic_tac_toe").opponents == ("random", "minimax:9")
    assert QConfig("connect_four").opponents == ("random", "minimax:4")
    evaluation = QEvaluationConfig(opponents=("greedy",))
    assert QConfig("connect_four", evaluation=evaluation).opponents == ("greedy",)


def test_a_run_has_its_own_directory():
    assert QConfig("go:5").directory == Path("runs/q_go_5")
    assert QConfig("go:5", run_dir="x/y").directory == Path("x/y")
    # Another spelling of the game gives the same one.
    config = QConfig("hex:size=3")
    assert (config.game, config.directory) == ("hex:3", Path("runs/q_hex_3"))


def test_the_json_settings_contain_the_kind_of_run():
    found = json.loads(json.dumps(QConfig("tic_tac_toe", network=PAIR).to_json()))
    assert found["kind"] == "q_learning"
    assert found["network"]["form"] == "pair"
