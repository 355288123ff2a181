import dataclasses
import json
import pickle
import sys

import chex
import jax
import numpy as np
import pytest
import safetensors.numpy

from azjax import games, players
from azjax.players import choose
from azjax.players.safetensors_file import (
    MAX_HEADER_BYTES,
    load_player_file,
    player_bytes,
)
from azjax.players.serialization import config_of, named_leaves


@pytest.fixture
def path(trained, tmp_path):
    path = tmp_path / "player.safetensors"
    path.write_bytes(player_bytes(trained, "here"))
    return path


def parts_of(trained):
    """Returns the settings and the arrays of a player, which a test changes."""
    arrays = {
        name: np.array(value) for name, value in named_leaves(trained.variables).items()
    }
    return config_of(trained), arrays


def write(path, config, arrays):
    text = config if isinstance(config, str) else json.dumps(config)
    path.write_bytes(safetensors.numpy.save(arrays, metadata={"azjax": text}))


def assert_refused(path, match):
    with pytest.raises(ValueError, match=match) as error:
        load_player_file(path, "ann/player")
    assert "ann/player" in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1000


def test_a_loaded_player_is_the_same_bit_for_bit(trained, path, states):
    loaded = load_player_file(path, "here")
    chex.assert_trees_all_equal(loaded.variables, trained.variables)
    assert config_of(loaded) == config_of(trained)
    key = jax.random.key(1)
    choices = [choose(player.player(8), key, states) for player in (loaded, trained)]
    chex.assert_trees_all_equal(*choices)


def test_the_pretrained_player_stays_the_same(tmp_path):
    trained = players.load_run("pretrained", games.make("tic_tac_toe"))
    path = tmp_path / "file"
    path.write_bytes(player_bytes(trained, "here"))
    chex.assert_trees_all_equal(
        load_player_file(path, "here").variables, trained.variables
    )


def test_the_file_is_the_same_for_the_same_player(trained, path):
    assert player_bytes(trained, "elsewhere") == path.read_bytes()


def test_other_programs_read_the_weights(trained, path):
    with safetensors.safe_open(path, framework="numpy") as file:
        settings = json.loads(file.metadata()["azjax"])
        assert set(file.keys()) == set(named_leaves(trained.variables))
    assert settings == config_of(trained)


def test_an_older_version_is_migrated(trained, path):
    config, arrays = parts_of(trained)
    del config["network"]["heads"]
    write(path, config | {"format": 5}, arrays)
    assert load_player_file(path, "here").config == trained.config


@pytest.mark.parametrize("size", [0, 5, 8, 100, -1])
def test_a_truncated_file_is_damaged(path, size):
    path.write_bytes(path.read_bytes()[:size])
    assert_refused(path, "player.safetensors in ann/player is damaged")


def test_bytes_after_the_weights_are_refused(path):
    path.write_bytes(path.read_bytes() + b"more")
    assert_refused(path, "damaged")


@pytest.mark.parametrize("length", [0, MAX_HEADER_BYTES + 1, 2**63])
def test_a_header_of_another_length_is_not_parsed(path, length, monkeypatch):
    content = path.read_bytes()
    with path.open("wb") as file:
        file.write(length.to_bytes(8, "little") + content[8:])
        file.truncate(2 * MAX_HEADER_BYTES)
    monkeypatch.setattr(safetensors, "safe_open", None)
    assert_refused(path, f"header must have from 1 to 4194304 bytes: {length}")


def test_a_file_that_is_too_large_is_not_opened(path, monkeypatch):
    with path.open("r+b") as file:
        file.truncate(10**10)  # takes no space on the disk
    monkeypatch.setattr(safetensors, "safe_open", None)
    assert_refused(path, r"has more than \d+ bytes")


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_is_refused_and_not_executed(path, tmp_path):
    content = pickle.dumps(Attack(tmp_path / "executed"))
    for start in (b"", len(content).to_bytes(8, "little")):
        path.write_bytes(start + content)
        assert_refused(path, "damaged")
    assert not (tmp_path / "executed").exists()


def test_weights_of_another_format_are_refused(trained, path):
    _, arrays = parts_of(trained)
    path.write_bytes(safetensors.numpy.save(arrays))
    assert_refused(path, "its header has no settings of azjax")
    np.savez(path.with_suffix(".npz"), **arrays)
    path.write_bytes(path.with_suffix(".npz").read_bytes())
    assert_refused(path, "damaged")


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ("{", "damaged"),
        ("[" * 100_000, "damaged"),
        ("[1]", "it is not a JSON object"),
        ('"' + "x" * 2**20 + '"', "more than 1048576 characters"),
    ],
)
def test_settings_that_are_no_object_are_refused(trained, path, config, match):
    write(path, config, parts_of(trained)[1])
    assert_refused(path, match)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": 99}, "its format is 99, and this version of azjax reads formats 1"),
        ({"format": None}, "its format is None"),
        ({"game": "checkers"}, "the unknown game 'checkers'"),
        ({"options": {"size": 5}}, "no option 'size'"),
        ({"seed": -1}, "seed must be an int"),
        ({"network": {"trunk": {"name": "dense", "width": 10**9}}}, "trunk.width"),
        ({"kind": "a\n\x1b[31m" + "x" * 100_000}, "trained by another algorithm"),
        ({"network": {"a\n\x1b[31m": 1}}, r"unknown setting network.a\?\?\[31m"),
        ({"kind": "q_learning"}, "trained by another algorithm"),
        ({"has_own_parts": True}, "modules of its author's own"),
    ],
)
def test_other_settings_are_refused(trained, path, change, match):
    config, arrays = parts_of(trained)
    write(path, config | change, arrays)
    assert_refused(path, match)


def test_a_network_above_the_limit_is_refused_before_its_weights_are_read(
    trained, path, monkeypatch
):
    trunk = {"name": "conv", "num_blocks": 64, "channels": 2048}
    config, arrays = parts_of(trained)
    write(path, config | {"network": {"trunk": trunk}}, arrays)
    monkeypatch.setattr("azjax.players.safetensors_file._read_arrays", None)
    assert_refused(path, r"takes \d+ bytes; at most 536870912 are loaded")


def change_first(change):
    """Returns a function that changes the first array."""

    def changed(arrays):
        name = min(arrays)
        return arrays | {name: change(arrays[name])}

    return changed


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        (change_first(lambda array: array[..., None]), "expected"),
        (change_first(lambda array: array.astype(np.float16)), "F16, expected F32"),
        (change_first(lambda array: array.astype(np.int32)), "I32, expected F32"),
        (change_first(lambda array: array * np.float32(np.nan)), "not finite"),
        (change_first(lambda array: array + np.float32(np.inf)), "not finite"),
        (lambda arrays: arrays | {"other": np.ones(3, np.float32)}, "'other' is"),
        (lambda arrays: arrays | {"a\n": np.ones(3, np.float32)}, r"'a\\n' is"),
        (lambda arrays: dict(list(arrays.items())[1:]), "is None, expected"),
        (lambda arrays: {}, "is None, expected"),
    ],
)
def test_other_weights_are_refused(trained, path, changed, match):
    config, arrays = parts_of(trained)
    write(path, config, changed(arrays))
    assert_refused(path, match)


def test_a_network_with_custom_modules_is_not_written(trained):
    own = dataclasses.replace(trained, has_own_parts=True)
    with pytest.raises(ValueError, match="here has modules of the user's own"):
        player_bytes(own, "here")


def test_weights_that_are_not_finite_are_not_written(trained):
    wrong = jax.tree.map(lambda leaf: leaf * np.nan, trained.variables)
    with pytest.raises(ValueError, match="not finite"):
        player_bytes(dataclasses.replace(trained, variables=wrong), "here")


def test_without_the_library_its_extra_is_named(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ValueError, match=r"pip install 'azjax\[hub\]'"):
        player_bytes(trained, "here")
