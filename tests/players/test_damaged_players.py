"""Damaged and hostile players, against the readers of directories and of files."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from azjax.players import load_player
from azjax.players.registry import MAX_WEIGHT_BYTES
from azjax.players.safetensors_file import (
    MAX_HEADER_BYTES,
    load_player_file,
    player_bytes,
)
from azjax.players.serialization import config_of, named_leaves, save_player


class DirectoryReader:
    """Saves a player as, and reads, a directory with two files."""

    def __init__(self, path, player):
        self.path = path / "a-player"
        self.files = [self.path / "config.json", self.path / "weights.npz"]
        save_player(self.path, player)

    def write(self, config, arrays):
        self.files[0].write_text(config)
        np.savez(self.files[1], **arrays)

    def load(self):
        return load_player(self.path, most=MAX_WEIGHT_BYTES)


class FileReader:
    """Saves a player as, and reads, a file of safetensors."""

    def __init__(self, path, player):
        self.files = [path / "player.safetensors"]
        self.files[0].write_bytes(player_bytes(player, "here"))

    def write(self, config, arrays):
        content = safetensors.numpy.save(arrays, metadata={"azjax": config})
        self.files[0].write_bytes(content)

    def load(self):
        return load_player_file(self.files[0], "ann/a-player")


@pytest.fixture
def directory(tmp_path, trained):
    return DirectoryReader(tmp_path, trained)


@pytest.fixture
def file(tmp_path, trained):
    return FileReader(tmp_path, trained)


@pytest.fixture(params=["directory", "file"])
def reader(request):
    return request.getfixturevalue(request.param)


def arrays_of(trained):
    return {
        name: np.array(value) for name, value in named_leaves(trained.variables).items()
    }


def assert_refused(reader, match):
    with pytest.raises(ValueError, match=match) as error:
        reader.load()
    assert "a-player" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    assert str(error.value).isprintable()


# Settings

IMPOSSIBLE_TRUNKS = [
    *({"name": "dense", key: 10**9} for key in ("width", "window", "stem_channels")),
    {"name": "dense", "num_blocks": 10**6},
    {"name": "dense", "width": 6.5},
    {"name": "dense", "width": True},
    {"name": "conv", "channels": 10**9},
    {"name": "conv", "global_pooling": "yes"},
]
ABSENT = object()
LARGE = {"name": "conv", "channels": 2048, "num_blocks": 2}
VERSIONS = "and this version of azjax reads formats 1"
SETTINGS = [
    ({"format": 99}, f"its format is 99, {VERSIONS}"),
    ({"format": None}, f"its format is None, {VERSIONS}"),
    ({"game": "checkers"}, "the unknown game 'checkers': run the file that registers"),
    ({"game": ["hex"]}, r"a game must be a string: \['hex'\]"),
    ({"options": {"size": 5}}, "no option 'size'"),
    ({"options": 5}, "does not fit"),
    ({"options": {"a\x1b" + "x" * 100_000: 5}}, "no option 'a"),
    ({"network": {"a\n\x1b[31m": 1}}, r"unknown setting network.a \?\[31m"),
    ({"network": {"depth": 5}}, "unknown setting network.depth"),
    ({"network": {"trunk": "transformer"}}, "network.trunk must be"),
    *(({"network": {"trunk": it}}, r"network\.trunk\.") for it in IMPOSSIBLE_TRUNKS),
    (
        {"network": {"trunk": LARGE}},
        rf"takes \d+ bytes; at most {MAX_WEIGHT_BYTES} are",
    ),
    (
        {"search": {"algorithm": "gumbel", "tree_reuse_nodes": 10**7}},
        "search.tree_reuse_nodes must be an int from 0 to 1864135: 10000000",
    ),
    ({"search": {"algorithm": "gumbel", "temperature": 5}}, "search.temperature"),
    *(
        ({"seed": seed}, "seed must be an int from 0")
        for seed in (-1, 2**32, 10**400, True, 1.5, "x" * 100_000, None)
    ),
    ({"kind": "a\n\x1b[31m" + "x" * 100_000}, "trained by another algorithm"),
    ({"kind": "q_learning"}, "trained by another algorithm; load it as q_learning"),
    ({"has_own_parts": True}, "modules of (the user|its author)'s own"),
    *(
        ({key: ABSENT}, f"its settings lack '{key}'")
        for key in ("game", "options", "network", "seed")
    ),
    ("{", "damaged"),
    ("[" * 100_000, "damaged"),
    ("1" * 5000, "damaged"),
    ('"' + "x" * 2**20 + '"', "damaged: .* ha(s|ve) more than 1048576 "),
    ("[1, 2]", "it is not a JSON object"),
]


@pytest.mark.parametrize(("change", "match"), SETTINGS)
def test_invalid_settings_are_refused_before_weights_are_read(
    reader, trained, change, match
):
    if isinstance(change, dict):
        config = config_of(trained) | change
        change = json.dumps({n: v for n, v in config.items() if v is not ABSENT})
    reader.write(change, {})  # no weights fit
    assert_refused(reader, match)


# Weights


def change_first(change):
    """Returns a function that changes the first array."""
    return lambda arrays: arrays | {min(arrays): change(arrays[min(arrays)])}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (change_first(lambda array: array[..., None]), r"is \(.*\), expected \("),
        (change_first(lambda array: array.astype(np.float64)), r"is of .*64, expected"),
        (change_first(lambda array: array.astype(np.int32)), r"is of .*32, expected"),
        (change_first(lambda array: array * np.float32(np.nan)), "not finite"),
        (change_first(lambda array: array + np.float32(np.inf)), "not finite"),
        *(
            (lambda arrays, it=it: arrays | {it: np.ones(3, np.float32)}, "expected No")
            for it in ("other", "a\n\x1b[31m" + "x" * 1000)
        ),
        (lambda arrays: dict(list(arrays.items())[1:]), r"is None, expected \("),
        (lambda arrays: {}, r"is None, expected \("),
    ],
)
def test_other_weights_are_refused(reader, trained, change, match):
    reader.write(json.dumps(config_of(trained)), change(arrays_of(trained)))
    assert_refused(reader, match)


def test_a_file_has_no_float16(file, trained):
    half = change_first(lambda array: array.astype(np.float16))(arrays_of(trained))
    file.write(json.dumps(config_of(trained)), half)
    assert_refused(file, "F16, expected F32")


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_refused_and_not_executed(reader, trained, tmp_path):
    attack = Attack(tmp_path / "executed")
    if isinstance(reader, DirectoryReader):
        array = np.array([{"a": attack}], dtype=object)
        arrays = dict.fromkeys(arrays_of(trained), array)
        reader.write(json.dumps(config_of(trained)), arrays)
        assert_refused(reader, "do not fit")
    else:
        content = pickle.dumps(attack)
        for start in (b"", len(content).to_bytes(8, "little")):
            reader.files[0].write_bytes(start + content)
            assert_refused(reader, "damaged")
    assert not (tmp_path / "executed").exists()


# Bytes


def test_truncated_files_and_pipes_are_refused(reader):
    for path in reader.files:
        content = path.read_bytes()
        for size in (0, 5, 8, 20, 100, 150, -1):
            path.write_bytes(content[:size])
            # The last byte of the settings is the end of their last line.
            if size > 0 or path.suffix != ".json":
                assert_refused(reader, "damaged")
        path.unlink()
        os.mkfifo(path)  # opening it must not block
        assert_refused(reader, f"damaged: {path} is not a regular file")
        path.unlink()
        path.write_bytes(content)


def test_a_missing_directory_or_file_of_it_is_named(directory):
    for path in directory.files:
        content = path.read_bytes()
        path.unlink()
        assert_refused(directory, "no player in .*a-player")
        path.write_bytes(content)
    directory.path.rename(directory.path.with_name("elsewhere"))
    assert_refused(directory, "no player in .*a-player")


def test_a_file_that_is_larger_than_its_arrays_is_not_opened(reader):
    with reader.files[-1].open("r+b") as file:
        file.truncate(10**12)  # takes no space on the disk
    assert_refused(reader, r"has more than \d+ bytes")


def test_changed_and_additional_bytes_of_a_directory_are_refused(directory):
    path = directory.files[1]
    content = path.read_bytes()
    # Within the compressed data of the first array, after its header and name.
    path.write_bytes(content[:150] + bytes([content[150] ^ 0xFF]) + content[151:])
    assert_refused(directory, "damaged")
    second_end = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    path.write_bytes(content[:-22] + second_end + content[-22:])
    assert_refused(directory, "damaged: its end is not that of an archive of arrays")


def test_a_file_of_another_length_header_or_format_is_refused(file, trained):
    (path,) = file.files
    content = path.read_bytes()
    path.write_bytes(content + b"more")
    assert_refused(file, "damaged")
    for length in (0, MAX_HEADER_BYTES + 1, 2**63):
        rest = content[8:].ljust(2 * MAX_HEADER_BYTES, b"\0")
        path.write_bytes(length.to_bytes(8, "little") + rest)
        assert_refused(file, f"header must have from 1 to 4194304 bytes .*: {length}")
    path.write_bytes(safetensors.numpy.save(arrays_of(trained)))
    assert_refused(file, "its header has no settings of azjax")
    with path.open("wb") as archive:
        np.savez(archive, **arrays_of(trained))
    assert_refused(file, "damaged")


# Archives


def header(shape, dtype="<f4"):
    """Returns the header of an array in an archive."""
    written = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(written, described)
    return written.getvalue()


def write_archive(directory, members):
    with zipfile.ZipFile(directory.files[1], "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ({"weights": header((3,), "|O")}, "do not fit the network"),
        ({"weights": b""}, "damaged"),
        ({"weights": b"\x93NUMPY\x09\x00"}, "damaged"),
        ({"x" * 60_000: header((3,))}, "do not fit the network"),
        ({"weights": header((-5,))}, "do not fit the network"),
        ({"huge": header((10**12,))}, r"huge is \(1000000000000,\), expected None"),
        ({f"w{n}": header(()) for n in range(1000)}, "more than"),
    ],
)
def test_an_archive_of_other_arrays_is_refused(directory, members, match):
    write_archive(directory, members)
    assert_refused(directory, match)


def test_archives_are_not_decompressed_beyond_their_arrays(directory):
    length = 10**7
    with zipfile.ZipFile(directory.files[1]) as archive:
        members = {
            name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()
        }
    name = max(members, key=lambda name: len(members[name]))
    start = b"\x93NUMPY\x02\x00" + struct.pack("<I", length)
    for changed, match in (
        (members | {name: members[name] + bytes(length)}, "does not match its shape"),
        ({"weights": start + b" " * length}, "damaged: EOF: reading array header"),
    ):
        write_archive(directory, changed)
        del changed
        tracemalloc.start()
        try:
            assert_refused(directory, match)
            assert tracemalloc.get_traced_memory()[1] < length / 4
        finally:
            tracemalloc.stop()


def test_an_archive_that_lists_many_more_arrays_is_refused_before_they_are_read(
    directory, trained, monkeypatch
):
    trunk = {"name": "dense", "width": 128, "num_blocks": 8}
    config = config_of(trained) | {"network": {"trunk": trunk}}
    directory.files[0].write_text(json.dumps(config))
    write_archive(directory, {f"{n:0100}": b"" for n in range(4000)})
    monkeypatch.setattr(zipfile.ZipFile, "__init__", None)  # opening it reads the list
    assert_refused(directory, r"the list of its arrays has more than \d+ bytes")
