import dataclasses
import io
import json
import os
import struct
import threading
import tracemalloc
import zipfile

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax import games
from azjax.networks import NetworkConfig, Parts, TrunkConfig, register_trunk, trunks
from azjax.players import TrainedPlayer, first_network, load_player, save_player
from azjax.players.serialization import pretrained_directory
from azjax.search import GumbelConfig


class FlatTrunk(nnx.Module):
    """A trunk without layers and parameters."""

    def __init__(self, observation_shape, rngs):
        pass

    def __call__(self, observation):
        return observation.reshape(len(observation), -1)


@pytest.fixture
def directory(trained, tmp_path):
    save_player(tmp_path / "player", trained)
    return tmp_path / "player"


def change_config(directory, **changes):
    path = directory / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(config))


def assert_refused(directory, match, parts=None):
    with pytest.raises(ValueError, match=match) as error:
        load_player(directory, parts)
    assert "\n" not in str(error.value)


def test_a_loaded_player_equals_the_saved_one(trained, directory):
    loaded = load_player(directory)
    chex.assert_trees_all_equal(loaded.variables, trained.variables)
    settings = dataclasses.asdict(
        dataclasses.replace(loaded, variables=None, network=None)
    )
    assert settings == dataclasses.asdict(
        dataclasses.replace(trained, variables=None, network=None)
    )


def test_float16_is_close_and_becomes_float32_again(trained, tmp_path):
    save_player(tmp_path, trained, dtype="float16")
    loaded = load_player(tmp_path)
    chex.assert_type(jax.tree.leaves(loaded.variables), jnp.float32)
    chex.assert_trees_all_close(
        loaded.variables, trained.variables, rtol=2**-11, atol=1e-6
    )


def test_float16_takes_less_space(trained, tmp_path):
    for dtype in ("float16", "float32"):
        save_player(tmp_path / dtype, trained, dtype=dtype)
    sizes = [
        (tmp_path / dtype / "weights.npz").stat().st_size
        for dtype in ("float16", "float32")
    ]
    assert sizes[0] < sizes[1]


def test_a_run_directory_can_be_loaded(trained, directory):
    assert load_player(directory.parent).game == trained.game


def test_saving_leaves_only_two_files(directory):
    names = sorted(path.name for path in directory.iterdir())
    assert names == ["config.json", "weights.npz"]


def test_a_reader_never_reads_an_incomplete_player(trained, directory):
    other = dataclasses.replace(
        trained, variables=jax.tree.map(lambda leaf: leaf + 1, trained.variables)
    )
    done = threading.Event()

    def write():
        for _ in range(10):
            save_player(directory, other)
            save_player(directory, trained)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        with np.load(directory / "weights.npz") as file:
            weights = dict(file)
        assert len(weights) == len(jax.tree.leaves(trained.variables))
        json.loads((directory / "config.json").read_text())
    writer.join()


def test_a_failed_save_does_not_change_the_player(trained, directory, monkeypatch):
    def write_partially(file, **weights):
        file.write(b"PK")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", write_partially)
    zero = jax.tree.map(jnp.zeros_like, trained.variables)
    with pytest.raises(OSError, match="no space"):
        save_player(directory, dataclasses.replace(trained, variables=zero))
    chex.assert_trees_all_equal(load_player(directory).variables, trained.variables)


def test_saving_again_replaces_the_player(trained, directory):
    zero = jax.tree.map(jnp.zeros_like, trained.variables)
    save_player(directory, dataclasses.replace(trained, variables=zero))
    chex.assert_trees_all_equal(load_player(directory).variables, zero)


def test_a_missing_player_is_an_error(tmp_path):
    assert_refused(tmp_path / "nowhere", "no player in .*nowhere")


@pytest.mark.parametrize("name", ["config.json", "weights.npz"])
def test_a_missing_file_is_an_error(directory, name):
    (directory / name).unlink()
    assert_refused(directory, "no player in")


@pytest.mark.parametrize("name", ["config.json", "weights.npz"])
@pytest.mark.parametrize("size", [0, 20, 150])
def test_a_truncated_file_is_damaged(directory, name, size):
    content = (directory / name).read_bytes()
    (directory / name).write_bytes(content[:size])
    assert_refused(directory, "damaged")


def test_a_changed_byte_in_the_weights_is_detected(directory):
    content = bytearray((directory / "weights.npz").read_bytes())
    # Within the compressed data of the first array, after its header and name.
    content[150] ^= 0xFF
    (directory / "weights.npz").write_bytes(content)
    assert_refused(directory, "damaged")


def test_pickled_objects_are_not_loaded(trained, directory):
    names = np.load(directory / "weights.npz").files
    objects = {name: np.array([{"a": 1}], dtype=object) for name in names}
    with (directory / "weights.npz").open("wb") as file:
        np.savez(file, **objects)
    assert_refused(directory, "do not fit")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "its format is 99, and this version of azjax reads formats 1"),
        ({"game": "checkers"}, "the unknown game 'checkers'"),
        ({"game": ["hex"]}, "a game must be a string: \\['hex'\\]"),
        ({"options": {"size": 5}}, "no option 'size'"),
        ({"options": 5}, "does not fit"),
        ({"network": {"depth": 5}}, "depth"),
        ({"network": {"trunk": "transformer"}}, "network.trunk must be"),
        ({"search": {"algorithm": "gumbel", "temperature": 5}}, "temperature"),
        ({"seed": "x"}, "does not fit"),
        (
            {"network": {"trunk": {"name": "dense", "width": 6}}},
            "do not fit the network",
        ),
    ],
)
def test_another_configuration_is_refused(directory, change, message):
    change_config(directory, **change)
    assert_refused(directory, message)


def test_a_player_of_an_older_version_loads(directory, trained):
    change_config(directory, format=1)
    assert load_player(directory).config == trained.config


def test_a_configuration_without_a_version_is_refused(directory):
    change_config(directory, format=None)
    assert_refused(directory, "its format is None, and this version")


@pytest.mark.parametrize("key", ["game", "options", "network", "seed"])
def test_a_configuration_with_missing_fields_is_refused(directory, key):
    config = json.loads((directory / "config.json").read_text())
    del config[key]
    (directory / "config.json").write_text(json.dumps(config))
    assert_refused(directory, f"its settings lack '{key}'")


def test_a_configuration_that_is_not_an_object_is_refused(directory):
    (directory / "config.json").write_text("[1, 2]")
    assert_refused(directory, "does not fit")


def test_weights_of_another_network_are_refused(trained, directory, tmp_path):
    config = NetworkConfig(dataclasses.replace(trained.config.trunk, num_blocks=2))
    network, variables = first_network(0, trained.game, config)
    larger = dataclasses.replace(
        trained, network=network, variables=variables, config=config
    )
    save_player(tmp_path / "larger", larger)
    weights = (tmp_path / "larger" / "weights.npz").read_bytes()
    (directory / "weights.npz").write_bytes(weights)
    assert_refused(directory, r"params/trunk/blocks/1/.* expected None")


def custom_player(trained) -> TrainedPlayer:
    network, variables = first_network(
        0, trained.game, trained.config, Parts(trunk=FlatTrunk)
    )
    return dataclasses.replace(
        trained, network=network, variables=variables, has_own_parts=True
    )


def test_a_network_with_custom_modules_is_loaded_with_them(trained, tmp_path):
    player = custom_player(trained)
    save_player(tmp_path, player)
    loaded = load_player(tmp_path, Parts(trunk=FlatTrunk))
    assert loaded.has_own_parts
    chex.assert_trees_all_equal(loaded.variables, player.variables)


def test_a_network_with_custom_modules_is_not_loaded_without_them(trained, tmp_path):
    save_player(tmp_path, custom_player(trained))
    assert_refused(tmp_path, "modules of the user's own, .*: parts=... in Python")


def test_modules_with_other_shapes_are_refused(trained, tmp_path):
    save_player(tmp_path, custom_player(trained))
    assert_refused(tmp_path, "do not fit the network", Parts())


def test_custom_modules_are_refused_for_a_network_without_any(trained, directory):
    loaded = load_player(directory, Parts(trunk=FlatTrunk))
    assert not loaded.has_own_parts
    chex.assert_trees_all_equal(loaded.variables, trained.variables)


def test_a_directory_can_be_a_string_or_a_path(trained, directory):
    for path in (str(directory), str(directory.parent), os.fspath(directory)):
        assert load_player(path).seed == trained.seed


def test_the_first_network_is_the_same_for_the_same_seed(trained):
    first, again, other = (
        first_network(seed, trained.game, trained.config)[1] for seed in (1, 1, 2)
    )
    chex.assert_trees_all_equal(first, again)
    assert any(
        (a != b).any()
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(other), strict=True)
    )


def test_an_unregistered_game_is_refused(directory):
    change_config(directory, game="nim")
    assert_refused(
        directory, "the unknown game 'nim': run the file that registers the game"
    )


def test_a_game_without_a_pretrained_player_is_named():
    message = r"no pretrained player for hex:4; .* connect_four, .*tic_tac_toe"
    with pytest.raises(ValueError, match=message):
        pretrained_directory(games.make("hex:4"))


def header(shape, dtype="<f4"):
    """Returns the header of an array in an archive."""
    file = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


def write_archive(directory, members):
    with zipfile.ZipFile(directory / "weights.npz", "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def test_an_archive_that_declares_a_huge_array_is_refused_before_decompression(
    directory,
):
    with zipfile.ZipFile(directory / "weights.npz", "a") as archive:
        archive.writestr("huge.npy", header((10**12,)))
    assert_refused(directory, r"huge is \(1000000000000,\), expected None")


def test_an_array_longer_than_its_shape_is_refused(directory, monkeypatch):
    with zipfile.ZipFile(directory / "weights.npz") as archive:
        members = {
            info.filename.removesuffix(".npy"): archive.read(info)
            for info in archive.infolist()
        }
    name = max(members, key=lambda name: len(members[name]))
    members[name] += bytes(10_000_000)
    with zipfile.ZipFile(
        directory / "weights.npz", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        for other, content in members.items():
            archive.writestr(f"{other}.npy", content)
    monkeypatch.setattr("azjax.players.weights._read", None)  # no data may be read
    assert_refused(directory, "does not match its shape")


def test_a_header_is_not_decompressed_beyond_its_limit(directory):
    length = 10**8
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", length) + b" " * length
    with zipfile.ZipFile(
        directory / "weights.npz", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        archive.writestr("weights.npy", content)
    tracemalloc.start()
    try:
        assert_refused(directory, "damaged: EOF: reading array header")
        assert tracemalloc.get_traced_memory()[1] < length / 10
    finally:
        tracemalloc.stop()


def test_an_archive_that_lists_many_more_arrays_is_refused_before_they_are_read(
    directory, monkeypatch
):
    trunk = {"name": "dense", "width": 128, "num_blocks": 8}
    change_config(directory, network={"trunk": trunk})
    write_archive(directory, {f"w{n}": b"" for n in range(20_000)})
    monkeypatch.setattr(zipfile.ZipFile, "__init__", None)  # opening it reads the list
    assert_refused(directory, r"the list of its arrays has more than \d+ bytes")


def test_a_second_end_record_is_refused(directory):
    content = (directory / "weights.npz").read_bytes()
    record = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    (directory / "weights.npz").write_bytes(content[:-22] + record + content[-22:])
    assert_refused(directory, "damaged: its end is not that of an archive of arrays")


def test_fortran_ordered_arrays_are_read(directory, trained):
    with np.load(directory / "weights.npz") as file:
        weights = {name: np.asfortranarray(file[name]) for name in file.files}
    np.savez(directory / "weights.npz", **weights)
    chex.assert_trees_all_equal(load_player(directory).variables, trained.variables)


def test_an_archive_that_is_larger_than_its_arrays_is_not_opened(directory):
    with (directory / "weights.npz").open("r+b") as file:
        file.truncate(10**12)  # takes no space on the disk
    assert_refused(directory, r"weights.npz has more than \d+ bytes")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "expected"),
        ({"weights": header((3,), "|O")}, "do not fit the network"),
        ({"weights": b""}, "damaged"),
        ({"weights": b"\x93NUMPY\x09\x00"}, "damaged"),
        ({"x" * 60_000: header((3,))}, "do not fit the network"),
        ({"weights": header((-5,))}, "do not fit the network"),
        ({f"w{n}": header(()) for n in range(1000)}, "more than"),
    ],
)
def test_an_archive_of_other_arrays_is_refused(directory, members, message):
    write_archive(directory, members)
    assert_refused(directory, message)


def test_weights_of_another_type_are_refused(trained, directory):
    save_player(directory, trained, dtype="float64")
    assert_refused(directory, "is of float64, expected float16 or float32")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(trained, directory, value):
    wrong = jax.tree.map(lambda leaf: np.full_like(leaf, value), trained.variables)
    save_player(directory, dataclasses.replace(trained, variables=wrong))
    assert_refused(directory, "has values that are not finite")


@pytest.mark.parametrize(
    "trunk",
    [
        {"name": "dense", "width": 10**9},
        {"name": "dense", "num_blocks": 10**6},
        {"name": "conv", "channels": 10**9},
        {"name": "dense", "window": 10**9},
        {"name": "dense", "stem_channels": 10**9},
        {"name": "dense", "width": 6.5},
        {"name": "dense", "width": True},
        {"name": "conv", "global_pooling": "yes"},
    ],
)
def test_an_impossible_network_size_is_refused(directory, trunk, monkeypatch):
    change_config(directory, network={"trunk": trunk})
    monkeypatch.setattr("azjax.players.weights.zipfile", None)  # no file is opened
    assert_refused(directory, r"network\.trunk\.")


@pytest.mark.parametrize("seed", [-1, 2**32, 10**400, True, 1.5, "x" * 100_000, None])
def test_an_invalid_seed_is_refused(directory, seed):
    change_config(directory, seed=seed)
    with pytest.raises(ValueError, match="seed must be an int from 0") as error:
        load_player(directory)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("content", ["[" * 100_000, "1" * 5000, "x" * 2**21])
def test_invalid_settings_are_refused(directory, content):
    (directory / "config.json").write_text(content)
    assert_refused(directory, "damaged")


@pytest.mark.parametrize("name", ["config.json", "weights.npz"])
def test_a_pipe_is_refused_without_blocking(directory, name):
    (directory / name).unlink()
    os.mkfifo(directory / name)
    assert_refused(directory, "is not a regular file")


def test_links_are_followed(directory, trained):
    (directory / "weights.npz").rename(directory.parent / "weights")
    (directory / "weights.npz").symlink_to(directory.parent / "weights")
    assert load_player(directory).game == trained.game


def test_players_with_equal_settings_share_the_network_structure(directory):
    assert load_player(directory).network is load_player(directory).network


@dataclasses.dataclass(frozen=True)
class FlatTrunkConfig(TrunkConfig):
    def make(self, observation_shape, *, dtype, rngs):
        del dtype
        return FlatTrunk(observation_shape, rngs)


def test_a_registered_trunk_is_saved_and_loaded_by_name(tmp_path, monkeypatch):
    classes = dict(trunks.TRUNKS._classes)
    monkeypatch.setattr(trunks.TRUNKS, "_classes", classes)
    config = NetworkConfig(register_trunk("flat")(FlatTrunkConfig)())
    game = games.make("tic_tac_toe")
    network, variables = first_network(0, game, config)
    player = TrainedPlayer(game, network, variables, config, GumbelConfig(), seed=0)
    save_player(tmp_path, player)
    loaded = load_player(tmp_path)
    assert loaded.config == config
    assert not loaded.has_own_parts
    chex.assert_trees_all_equal(loaded.variables, variables)
    del classes["flat"]
    assert_refused(tmp_path, "unknown trunk 'flat'; .* import the module")


def test_heads_that_do_not_fit_the_game_name_the_player(tmp_path):
    trunk = trunks.ConvTrunkConfig(num_blocks=0, channels=2)
    config = NetworkConfig(trunk, heads="board")
    game = games.make("tic_tac_toe")
    network, variables = first_network(0, game, config)
    trained = TrainedPlayer(game, network, variables, config, GumbelConfig(), 0)
    save_player(tmp_path, trained)
    content = json.loads((tmp_path / "config.json").read_text())
    changed = json.dumps(content | {"game": "connect_four"})
    (tmp_path / "config.json").write_text(changed)
    with pytest.raises(ValueError, match=r"does not fit .*: network.heads must be d"):
        load_player(tmp_path)


@pytest.mark.parametrize("game", ["chess", "hex:5"])
def test_line_planes_are_refused_in_games_without_lines(game):
    config = NetworkConfig(line_length=4)
    with pytest.raises(ValueError, match=f"line_length must be 0 .* {game}: 4$"):
        first_network(0, games.make(game), config)
