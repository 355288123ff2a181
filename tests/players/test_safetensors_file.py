import dataclasses
import json
import sys

import chex
import jax
import numpy as np
import pytest
import safetensors.numpy

from azjax.players import NetworkPlayer, choose
from azjax.players.safetensors_file import load_player_file, player_bytes
from azjax.players.serialization import config_of, named_leaves


@pytest.fixture
def path(trained, tmp_path):
    path = tmp_path / "player.safetensors"
    path.write_bytes(player_bytes(trained, "here"))
    return path


def test_a_loaded_player_is_the_same_bit_for_bit(trained, path, states):
    loaded = load_player_file(path, "here")
    chex.assert_trees_all_equal(loaded.variables, trained.variables)
    assert config_of(loaded) == config_of(trained)
    key = jax.random.key(1)
    of_loaded, expected = (
        choose(NetworkPlayer(it.game, it.network, it.variables), key, states)
        for it in (loaded, trained)
    )
    chex.assert_trees_all_equal(of_loaded, expected)
    # The file is the same for the same player, and other programs read it.
    assert player_bytes(loaded, "elsewhere") == path.read_bytes()
    with safetensors.safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["azjax"]) == config_of(trained)
        assert set(file.keys()) == set(named_leaves(trained.variables))


def test_an_older_version_is_migrated(trained, path):
    config = config_of(trained) | {"format": 5}
    del config["network"]["heads"]
    arrays = jax.tree.map(np.asarray, dict(named_leaves(trained.variables)))
    metadata = {"azjax": json.dumps(config)}
    path.write_bytes(safetensors.numpy.save(arrays, metadata=metadata))
    assert load_player_file(path, "here").config == trained.config


def test_custom_modules_and_weights_that_are_not_finite_are_not_written(trained):
    wrong = jax.tree.map(lambda leaf: leaf * np.float32(np.nan), trained.variables)
    for changes, message in (
        ({"has_own_parts": True}, "here has modules of the user's own"),
        ({"variables": wrong}, "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            player_bytes(dataclasses.replace(trained, **changes), "here")


def test_without_the_library_its_extra_is_named(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ValueError, match=r"pip install 'azjax\[hub\]'"):
        player_bytes(trained, "here")
