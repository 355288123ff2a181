"""A player as one safetensors file: weights, with its settings in the header.

A file may come from an untrusted source. Its sizes are checked before the library
safetensors parses it; nothing in it is executed.
"""

import contextlib
import importlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

from azjax.checks import printable
from azjax.networks import Variables
from azjax.players.registry import MAX_WEIGHT_BYTES
from azjax.players.saved_settings import MAX_MESSAGE, MissingPartsError, Source
from azjax.players.serialization import (
    MAX_CONFIG_BYTES,
    TrainedPlayer,
    check_weight_bytes,
    config_of,
    named_leaves,
    player_of,
)
from azjax.players.weights import MismatchError, check_finite
from azjax.remote import open_regular

PLAYER_FILE = "player.safetensors"
SETTINGS_KEY = "azjax"  # of the header's metadata
MAX_HEADER_BYTES = 2**22
_LENGTH_BYTES = 8  # of the length of the header, little-endian
MAX_FILE_BYTES = _LENGTH_BYTES + MAX_HEADER_BYTES + MAX_WEIGHT_BYTES


def player_bytes(player: TrainedPlayer, source: Source) -> bytes:
    """Returns the file of a player; the weights are float32.

    Args:
        player: the player.
        source: where the player comes from, for messages.

    Raises:
        ValueError: the network has modules of the user's own, is too large or has
            weights that are not finite; or safetensors is not installed.
    """
    library = _library("safetensors.numpy")
    if player.has_own_parts:
        raise ValueError(
            f"the network in {source} has modules of the user's own, which the file "
            "cannot hold"
        )
    arrays = {
        name: np.asarray(value, np.float32, order="C")
        for name, value in named_leaves(player.variables).items()
    }
    for name, array in arrays.items():
        check_finite(name, array)
    num_bytes = sum(array.nbytes for array in arrays.values())
    check_weight_bytes(num_bytes, source, MAX_WEIGHT_BYTES)
    settings = json.dumps(config_of(player))
    return library.save(arrays, metadata={SETTINGS_KEY: settings})


def load_player_file(path: Path, source: Source) -> TrainedPlayer:
    """Loads a player from a file that `player_bytes` returned.

    Args:
        path: of the file.
        source: where the file comes from, for messages.

    Raises:
        ValueError: the file is no player, damaged, too large, of an unknown version,
            or its network has modules of its author's own; or safetensors is not
            installed.
    """
    library = _library("safetensors")
    with _reading(source):
        _check_sizes(path)
        with library.safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(SETTINGS_KEY)
        if text is None:
            raise ValueError("its header has no settings of azjax")
        if len(text) > MAX_CONFIG_BYTES:
            raise ValueError(
                f"its settings have more than {MAX_CONFIG_BYTES} characters"
            )
        config = json.loads(text)

    def read(shapes: Variables) -> Variables:
        expected = {name: leaf.shape for name, leaf in named_leaves(shapes).items()}
        num_bytes = 4 * sum(map(math.prod, expected.values()))
        check_weight_bytes(num_bytes, source, MAX_WEIGHT_BYTES)
        with _reading(source), library.safe_open(path, framework="numpy") as file:
            arrays = _read_arrays(file, expected)
        leaves = jax.device_put([arrays[name] for name in expected])
        return jax.tree.unflatten(jax.tree.structure(shapes), leaves)

    try:
        return player_of(config, source, read, is_trusted=False)
    except MissingPartsError:
        raise ValueError(
            f"the network in {source} has modules of its author's own, which the file "
            "does not hold"
        ) from None
    except ValueError as error:
        raise ValueError(printable(str(error), MAX_MESSAGE)) from error


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ValueError(
            "safetensors is not installed: pip install 'azjax[hub]'"
        ) from None


@contextlib.contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Converts errors of reading a file to ValueErrors with its source."""
    try:
        yield
    except MismatchError as error:
        raise ValueError(
            f"the weights in {source} do not fit the network described there: {error}"
        ) from None
    except Exception as error:  # of a damaged file the library raises any
        problem = printable(str(error), MAX_MESSAGE)
        raise ValueError(f"{PLAYER_FILE} in {source} is damaged: {problem}") from error


def _check_sizes(path: Path) -> None:
    """Checks the size of a file and of its header, which the library reads at once."""
    with open_regular(path, MAX_FILE_BYTES) as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        rest = file.seek(0, os.SEEK_END) - _LENGTH_BYTES
    if not 0 < length <= min(rest, MAX_HEADER_BYTES):
        raise ValueError(
            f"its header must have from 1 to {MAX_HEADER_BYTES} bytes and fit into the "
            f"{max(rest, 0)} that follow its length: {length}"
        )


def _read_arrays(
    file: Any, expected: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """Reads the arrays of a file opened by the library."""
    names = file.keys()
    slices = {name: file.get_slice(name) for name in names}
    for name in sorted(expected.keys() | slices.keys()):
        found = tuple(slices[name].get_shape()) if name in slices else None
        if found is None or found != expected.get(name):
            raise MismatchError(
                f"{name[:80]!r} is {str(found)[:80]}, expected {expected.get(name)}"
            )
        dtype = slices[name].get_dtype()
        if dtype != "F32":
            raise MismatchError(f"{name} is of {dtype}, expected F32")
    arrays = {name: file.get_tensor(name) for name in expected}
    for name, array in arrays.items():
        check_finite(name, array)
    return arrays
