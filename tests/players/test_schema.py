import json
import pathlib

import pytest

from azjax.players.schema import VERSION, migrate
from azjax.training import LearnerConfig, TrainConfig

CONFIGS = pathlib.Path(__file__).parents[1] / "training" / "configs"
Q_RUN = {"kind": "q_learning", "minutes": None, "iterations": None, "games": 256}
EVALUATION = {"num_evaluations": 10, "num_games": 200, "opponents": None}
OLD_Q = {
    **({"format": 2} | Q_RUN),
    **{"evaluations": 10, "evaluation_games": 200, "evaluation_opponents": None},
}
NEW_TRUNK_SETTINGS = {"heads": "dense", "line_length": 0, "dtype": "float32"}


@pytest.mark.parametrize("version", range(1, VERSION + 1))
@pytest.mark.parametrize("kind", [{}, {"kind": "q_learning"}])
def test_a_player_of_every_version_is_migrated_to_this_one(version, kind):
    config = kind | {"game": "hex", "network": {}}
    old = {"format": version, **config}
    before = json.dumps(old)
    assert migrate(old) == {**config, "format": VERSION}
    assert json.dumps(old) == before


@pytest.mark.parametrize(
    ("old", "migrated"),
    [
        # A run of version 1 has an unknown optimizer.
        (
            {"format": 1, "game": "hex", "learner": {"batch_size": 4}},
            {
                "game": "hex",
                "learner": {"batch_size": 4, "max_regret": 2.0, "owners_weight": 0.0},
                "optimizer": None,
                "num_lanes": 1,
                "stored_fraction": 1.0,
            },
        ),
        (OLD_Q, Q_RUN | {"minutes": 2.0, "evaluation": EVALUATION}),
    ],
)
def test_a_run_of_an_old_version_is_migrated(old, migrated):
    before = json.dumps(old)
    assert migrate(old) == {"format": VERSION, **migrated}
    assert json.dumps(old) == before


@pytest.mark.parametrize(
    "section", ["network", "search", "self_play", "learner", "evaluation"]
)
def test_every_setting_of_version_2_is_renamed(section):
    old = json.loads((CONFIGS / "run_2.json").read_text())
    learner = LearnerConfig(max_regret=2.0)
    config = TrainConfig(game="tic_tac_toe", iterations=3, learner=learner)
    today = config.to_json()
    assert migrate(old)[section] == json.loads(json.dumps(today[section]))
    assert old[section].keys() != today[section].keys()


@pytest.mark.parametrize("length", [{"minutes": 7.0}, {"iterations": 9}])
def test_a_q_run_of_version_2_keeps_its_length(length):
    migrated = migrate(OLD_Q | length)
    assert {name: migrated[name] for name in length} == length
    assert [migrated["minutes"], migrated["iterations"]].count(None) == 1


def old_trunk(name, **settings):
    """Returns a network of version 2, whose trunks have the settings of all trunks."""
    unused = {"channels": 1, "global_pooling": False, "width": 1, "window": 1}
    return {"trunk": name, "value_head": "wdl", "dtype": "float32"} | unused | settings


def new_trunk(**trunk):
    return {"trunk": trunk, "value_head": "wdl", **NEW_TRUNK_SETTINGS}


CONV = {"num_blocks": 2, "channels": 4, "global_pooling": True}
GUMBEL, ALPHAZERO = {"algorithm": "gumbel"}, {"algorithm": "alphazero"}
CONSTANTS = {"c_init": 2.0, "value_scale": 0.5}
DENSE = {"num_blocks": 2, "width": 16, "stem_channels": 8, "window": 3}


@pytest.mark.parametrize(
    ("version", "section", "old", "migrated"),
    [
        # Trunks of version 2 keep the settings that they use.
        (2, "network", old_trunk("conv", **CONV), new_trunk(name="conv", **CONV)),
        (
            *(2, "network", old_trunk("dense", **DENSE)),
            new_trunk(name="dense", **DENSE, input_skip=False),
        ),
        # Version 5 removed settings, and keeps those of the algorithm.
        *(
            (4, "search", old, new)
            for old, new in (
                ({"prior_dtype": "bfloat16", "leaves_per_step": 8}, GUMBEL),
                (GUMBEL | CONSTANTS, GUMBEL | {"value_scale": 0.5}),
                (ALPHAZERO | CONSTANTS, ALPHAZERO | {"c_init": 2.0}),
                ({"use_solver": True}, GUMBEL | {"use_solver": True}),
            )
        ),
        (7, "network", {"value_head": "wdl"}, {"value_head": "wdl", "line_length": 0}),
        (8, "learner", {"batch_size": 9}, {"batch_size": 9, "owners_weight": 0.0}),
        (
            *(9, "network", {"trunk": {"name": "dense", "width": 16}}),
            {"trunk": {"name": "dense", "width": 16, "input_skip": False}},
        ),
        # Others, and malformed sections, are left unchanged.
        *(
            (9, "network", {"trunk": trunk}, {"trunk": trunk})
            for trunk in ({"name": "conv", "channels": 4}, None, [], "dense")
        ),
        *((1, "search", search, search) for search in (None, [], "fast")),
        *(
            (2, "network", network, network)
            for network in (None, [], "conv", {}, {"trunk": []}, {"trunk": {}})
        ),
    ],
)
def test_a_section_of_an_old_version_is_migrated(version, section, old, migrated):
    assert migrate({"format": version, section: old})[section] == migrated


def test_a_run_of_version_7_learns_from_stored_games_alone():
    migrated = migrate({"format": 7, "learner": {}, "learn_from": ["runs/a"]})
    assert migrated["stored_fraction"] == 1


@pytest.mark.parametrize(
    "version", [VERSION + 1, 0, -1, True, 1.0, "1", None, [], "1" * 10**6]
)
def test_an_unknown_version_is_refused_in_one_line(version):
    with pytest.raises(ValueError, match=f"reads formats 1 to {VERSION}$") as error:
        migrate({"format": version, "game": "hex"})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("content", [[], "format", None, 1])
def test_a_config_that_is_not_an_object_is_refused(content):
    with pytest.raises(ValueError, match="it is not a JSON object"):
        migrate(content)
