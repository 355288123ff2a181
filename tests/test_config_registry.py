import json

import pytest

from azjax.settings import from_json
from azjax.training import TrainConfig, preset
from azjax.training.q_config import QConfig


def values(**changes):
    config = TrainConfig(game="tic_tac_toe", iterations=3)
    return json.loads(json.dumps(config.to_json())) | changes


def test_the_settings_survive_json():
    config = preset("accelerator", "hex:5", iterations=2, run_dir="somewhere")
    content = json.loads(json.dumps(config.to_json()))
    assert from_json(TrainConfig, content) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "1"}, "seed has the wrong type: '1'"),
        ({"seed": True}, "seed has the wrong type: True"),
        ({"iterations": 1.5}, "iterations has the wrong type: 1.5"),
        ({"learner": {"batch_size": None}}, "learner.batch_size has the wrong type"),
        ({"learner": {"uses": 1.0}}, "unknown setting learner.uses"),
        ({"learner": []}, "learner must be an object: "),
        ({"network": {"trunk": "dense"}}, "network.trunk must be an object: 'dense'"),
        ({"network": {"trunk": {"name": "tower"}}}, "'tower'; known trunks are"),
        ({"network": {"trunk": {"name": []}}}, "unknown trunk"),
        ({"network": {"trunk": {"name": "conv", "width": 3}}}, "network.trunk.width"),
        ({"self_play": {"num_simulations": [1, "2"]}}, "num_simulations has the wrong"),
        ({"self_play": {"num_games": 0}}, "self_play.num_games must be an int >= 1: 0"),
        ({"x" * 10**6: 1}, "unknown setting x{40}$"),
    ],
)
def test_unknown_settings_raise(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        from_json(TrainConfig, values(**changes))
    assert len(str(error.value)) < 200


def test_a_tuple_may_be_optional():
    values = {"game": "tic_tac_toe", "network": {"hidden": [8, 4]}}
    assert from_json(QConfig, values).network.hidden == (8, 4)
    values["network"] = {"hidden": None}
    assert from_json(QConfig, values).network.hidden is None
    with pytest.raises(ValueError, match=r"network.hidden has the wrong type: '8'"):
        from_json(QConfig, values | {"network": {"hidden": ["8"]}})
