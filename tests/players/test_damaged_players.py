"""Damaged and hostile files of players."""

import json
import os
import pickle
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy

from azjax.players import load_player, save_player
from azjax.players.serialization import (
    MAX_HEADER_BYTES,
    MAX_WEIGHT_BYTES,
    PLAYER_FILE,
    config_of,
    named_leaves,
)


@pytest.fixture
def path(tmp_path, trained):
    """The file of a saved player."""
    save_player(tmp_path / "a-player", trained)
    return tmp_path / "a-player" / PLAYER_FILE


def write(path, config, arrays):
    path.write_bytes(safetensors.numpy.save(arrays, metadata={"azjax": config}))


def arrays_of(trained):
    return {
        name: np.array(value) for name, value in named_leaves(trained.variables).items()
    }


def assert_refused(path, match):
    with pytest.raises(ValueError, match=match) as error:
        load_player(path.parent, most=MAX_WEIGHT_BYTES)
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
SETTINGS = [
    ({"format": 99}, "its format is 99, and"),
    ({"format": None}, "its format is None, and"),
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
        {"network": {"trunk": {"name": "conv", "channels": 2048, "num_blocks": 2}}},
        rf"takes \d+ bytes; at most {MAX_WEIGHT_BYTES} are loaded",
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
    ({"has_custom_modules": True}, "modules of the user's own"),
    *(
        ({key: ABSENT}, f"its settings lack '{key}'")
        for key in ("game", "options", "network", "seed")
    ),
    ("{", "damaged"),
    ("[" * 100_000, "damaged"),
    ("1" * 5000, "damaged"),
    ('"' + "x" * 2**20 + '"', "damaged: .* have more than 1048576 "),
    ("[1, 2]", "it is not a JSON object"),
]


@pytest.mark.parametrize(("change", "match"), SETTINGS)
def test_invalid_settings_are_refused(path, trained, change, match):
    if isinstance(change, dict):
        config = config_of(trained) | change
        change = json.dumps({n: v for n, v in config.items() if v is not ABSENT})
    write(path, change, {})  # no weights fit
    assert_refused(path, match)


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
def test_other_weights_are_refused(path, trained, change, match):
    write(path, json.dumps(config_of(trained)), change(arrays_of(trained)))
    assert_refused(path, match)


# Bytes


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_refused_and_not_executed(path, tmp_path):
    content = pickle.dumps(Attack(tmp_path / "executed"))
    for start in (b"", len(content).to_bytes(8, "little")):
        path.write_bytes(start + content)
        assert_refused(path, "damaged")
    assert not (tmp_path / "executed").exists()


def test_truncated_and_missing_files_and_pipes_are_refused(path):
    content = path.read_bytes()
    for size in (0, 5, 8, 20, 100, 150, -1):
        path.write_bytes(content[:size])
        assert_refused(path, "damaged")
    path.unlink()
    assert_refused(path, "no player in .*a-player: training writes player.safetensors")
    os.mkfifo(path)  # opening it must not block
    assert_refused(path, f"damaged: {path} is not a regular file")
    path.unlink()
    path.parent.rmdir()
    assert_refused(path, "no player in .*a-player, which does not exist")


def test_a_file_of_another_length_header_or_format_is_refused(path, trained):
    content = path.read_bytes()
    path.write_bytes(content + b"more")
    assert_refused(path, "damaged")
    for length in (0, MAX_HEADER_BYTES + 1, 2**63):
        path.write_bytes(length.to_bytes(8, "little") + content[8:])
        assert_refused(path, f"must have from 1 to {MAX_HEADER_BYTES} bytes: {length}")
    path.write_bytes(safetensors.numpy.save(arrays_of(trained)))
    assert_refused(path, "its header has no settings of azjax")
    with path.open("wb") as archive:
        np.savez(archive, **arrays_of(trained))
    assert_refused(path, "damaged")


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"__metadata__": []},
        {"__metadata__": {"azjax": 5}},
        {"__metadata__": {"azjax": "{}"}, "x": 5},
    ],
)
def test_a_header_of_another_form_is_refused(path, header):
    content = json.dumps(header).encode()
    path.write_bytes(len(content).to_bytes(8, "little") + content)
    assert_refused(path, "damaged")


def test_a_file_that_is_too_large_is_not_read(path, trained):
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    tracemalloc.start()
    try:
        # The settings are those of a small network.
        size = MAX_WEIGHT_BYTES
        about = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
        content = json.dumps({"__metadata__": header["__metadata__"], "x": about})
        path.write_bytes(len(content).to_bytes(8, "little") + content.encode())
        os.truncate(path, 8 + len(content) + size)  # takes no space on the disk
        assert_refused(path, "do not fit the network")
        for large in (2**30, 10**12):
            os.truncate(path, large)
            assert_refused(path, r"has more than \d+ bytes")
        path.write_bytes(b"")
        os.truncate(path, MAX_WEIGHT_BYTES)
        assert_refused(path, "its header must have")
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()
