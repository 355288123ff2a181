import json
import pathlib

import pytest

from azjax.players import schema
from azjax.players.schema import VERSION, migrate
from azjax.training import LearnerConfig, TrainConfig

CONFIGS = pathlib.Path(__file__).parents[1] / "training" / "configs"


def test_a_config_of_this_version_is_unchanged():
    config = {"format": VERSION, "game": "hex"}
    assert migrate(config) == config


def test_a_run_of_version_1_has_an_unknown_optimizer():
    config = {"format": 1, "game": "hex", "learner": {"batch_size": 4}}
    before = json.dumps(config)
    migrated = migrate(config)
    learner = {"batch_size": 4, "max_regret": 2.0, "owners_weight": 0.0}
    others = {"format": VERSION, "optimizer": None, "num_lanes": 1}
    others["stored_fraction"] = 1.0
    assert migrated == {**config, "learner": learner, **others}
    assert json.dumps(config) == before


def test_a_run_of_version_7_learns_from_stored_games_alone():
    migrated = migrate({"format": 7, "learner": {}, "learn_from": ["runs/a"]})
    assert migrated["stored_fraction"] == 1


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


def test_a_player_of_version_1_only_changes_its_version():
    config = {"format": 1, "game": "hex", "network": {}}
    assert migrate(config) == {**config, "format": VERSION}


OLD_Q = {
    "format": 2,
    "kind": "q_learning",
    "minutes": None,
    "iterations": None,
    "games": 256,
    "evaluations": 10,
    "evaluation_games": 200,
    "evaluation_opponents": None,
}


def test_a_q_run_of_version_2_gets_a_nested_evaluation_and_a_length():
    assert migrate(OLD_Q) == {
        "format": VERSION,
        "kind": "q_learning",
        "minutes": 2.0,
        "iterations": None,
        "games": 256,
        "evaluation": {"num_evaluations": 10, "num_games": 200, "opponents": None},
    }


@pytest.mark.parametrize("length", [{"minutes": 7.0}, {"iterations": 9}])
def test_a_q_run_of_version_2_keeps_its_length(length):
    migrated = migrate(OLD_Q | length)
    assert {name: migrated[name] for name in length} == length
    assert [migrated["minutes"], migrated["iterations"]].count(None) == 1


def test_a_q_player_of_version_2_only_changes_its_version():
    config = {"format": 2, "kind": "q_learning", "game": "hex", "network": {}}
    assert migrate(config) == {**config, "format": VERSION}


def test_settings_that_version_5_removed_are_dropped():
    search = {"leaves_per_step": 8, "prior_dtype": "bfloat16", "use_solver": True}
    migrated = migrate({"format": 4, "game": "hex", "search": search})
    assert migrated["search"] == {"algorithm": "gumbel", "use_solver": True}


@pytest.mark.parametrize(
    ("algorithm", "kept"), [("gumbel", "value_scale"), ("alphazero", "c_init")]
)
def test_version_5_keeps_the_settings_of_the_algorithm(algorithm, kept):
    search = {"algorithm": algorithm, "c_init": 2.0, "value_scale": 0.5}
    migrated = migrate({"format": 4, "game": "hex", "search": search})
    assert migrated["search"] == {"algorithm": algorithm, kept: search[kept]}


@pytest.mark.parametrize("search", [None, [], "fast"])
def test_malformed_sections_are_left_unchanged(search):
    config = {"format": 1, "search": search}
    assert migrate(config) == {"format": VERSION, "search": search}


def test_every_version_has_a_migration_step(monkeypatch):
    def rename(config):
        return {"new_game": config["game"]}

    def add(config):
        return {**config, "komi": 0.5}

    monkeypatch.setattr(schema, "VERSION", 3)
    monkeypatch.setattr(schema, "_STEPS", {1: rename, 2: add})
    assert migrate({"format": 1, "game": "go"}) == {
        "format": 3,
        "new_game": "go",
        "komi": 0.5,
    }


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


@pytest.mark.parametrize(
    ("trunk", "settings", "added"),
    [
        ("conv", {"num_blocks": 2, "channels": 4, "global_pooling": True}, {}),
        (
            "dense",
            {"num_blocks": 2, "width": 16, "stem_channels": 8, "window": 3},
            {"input_skip": False},
        ),
    ],
)
def test_a_trunk_of_version_2_keeps_the_settings_that_it_uses(trunk, settings, added):
    unused = {"channels": 1, "global_pooling": False, "width": 1, "window": 1}
    old = {"trunk": trunk, "value_head": "wdl", "dtype": "float32"}
    migrated = migrate({"format": 2, "network": unused | settings | old})
    assert migrated["network"] == {
        "trunk": {"name": trunk, **settings, **added},
        "value_head": "wdl",
        "heads": "dense",
        "line_length": 0,
        "dtype": "float32",
    }


def test_a_network_of_version_7_has_no_line_planes():
    network = {"value_head": "wdl", "heads": "dense"}
    migrated = migrate({"format": 7, "network": network})
    assert migrated["network"] == {**network, "line_length": 0}


def test_a_run_of_version_8_has_no_territory_heads():
    migrated = migrate({"format": 8, "learner": {"batch_size": 16}})
    assert migrated["learner"] == {"batch_size": 16, "owners_weight": 0.0}


def test_a_dense_trunk_of_version_9_does_not_pass_on_its_input():
    trunk = {"name": "dense", "width": 16}
    migrated = migrate({"format": 9, "network": {"trunk": trunk, "heads": "dense"}})
    expected = {"trunk": {**trunk, "input_skip": False}, "heads": "dense"}
    assert migrated["network"] == expected


@pytest.mark.parametrize("trunk", [{"name": "conv", "channels": 4}, None, [], "dense"])
def test_other_trunks_of_version_9_are_left_unchanged(trunk):
    network = {"trunk": trunk}
    assert migrate({"format": 9, "network": network})["network"] == network


@pytest.mark.parametrize(
    "network", [None, [], "conv", {}, {"trunk": []}, {"trunk": {}}]
)
def test_malformed_networks_of_version_2_are_left_unchanged(network):
    assert migrate({"format": 2, "network": network})["network"] == network
