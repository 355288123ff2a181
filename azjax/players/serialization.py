"""Trained players on disk, and the networks that their settings describe.

A player is one file of safetensors: the weights by their paths, and the settings of
game, network and search as JSON in the header. A file may come from an untrusted
source: its sizes are limited, and nothing in it is executed.
"""

import contextlib
import dataclasses
import functools
import importlib.resources
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, TypeVar

import jax
import numpy as np
import safetensors.numpy

from azjax import games
from azjax.files import (
    Directory,
    as_directory,
    open_regular,
    replace_file,
    store_errors,
    store_problem,
)
from azjax.networks import (
    CustomModules,
    Network,
    NetworkConfig,
    QNetwork,
    QNetworkConfig,
    QParams,
    Variables,
    init_network,
    init_q_network,
)
from azjax.players.model import num_edges
from azjax.players.search_players import AlphaZeroPlayer
from azjax.players.simple import QPlayer
from azjax.search import SearchConfig
from azjax.settings import FORMAT, Seed, check, check_format, check_int, from_json
from azjax.text import printable

PLAYER_FILE = "player.safetensors"
SETTINGS_KEY = "azjax"  # of the header's metadata
PRETRAINED = "pretrained"
Q_LEARNING = "q_learning"  # kind of a player
DTYPES = {"F16": "float16", "F32": "float32"}  # of weights on disk

MAX_CONFIG_BYTES = 2**20
MAX_HEADER_BYTES = 2**21
MAX_WEIGHT_BYTES = 2**29  # as float32, of an untrusted player
LARGEST_WEIGHT_BYTES = 2**31  # as float32
MAX_FILE_BYTES = 8 + MAX_HEADER_BYTES + MAX_WEIGHT_BYTES  # of an untrusted player
MAX_REUSED_EDGES = 2**24  # of a tree that is kept; each takes about 100 bytes
MAX_MESSAGE = 500  # characters

S = TypeVar("S")
V = TypeVar("V")
Source: TypeAlias = str | os.PathLike[str]  # of a player, for messages


class MissingModulesError(ValueError):
    """A network has modules of the user's own, which were not passed."""


@dataclasses.dataclass(frozen=True)
class TrainedPlayer:
    """A trained network with its game and search.

    network, variables: the network and its arrays.
    config: configuration of the network.
    search: search settings of training.
    seed: seed of the initial parameters.
    has_custom_modules: whether the network has modules of the user's own.
    """

    game: games.Game
    network: Network = dataclasses.field(repr=False)
    variables: Variables = dataclasses.field(repr=False)
    config: NetworkConfig
    search: SearchConfig
    seed: int
    has_custom_modules: bool = False

    def player(self, simulations: int) -> AlphaZeroPlayer:
        """Returns a player that makes so many simulations per move."""
        return AlphaZeroPlayer(
            self.game, self.search, simulations, self.network, self.variables
        )


def save_player(
    directory: Path, player: TrainedPlayer, *, dtype: str = "float32"
) -> None:
    """Writes a player, atomically.

    Args:
        directory: created if missing.
        player: the player.
        dtype: dtype of the weights on disk; `float16` halves their size.
    """
    replace_file(directory / PLAYER_FILE, player_bytes(player, dtype))


def player_bytes(player: TrainedPlayer, dtype: str = "float32") -> bytes:
    """Returns the content of a player's file."""
    return _file_bytes(config_of(player), player.variables, dtype)


def config_of(player: TrainedPlayer) -> dict[str, Any]:
    """Returns a player's settings as JSON values."""
    return {
        "format": FORMAT,
        "game": player.game.name,
        "options": player.game.options,
        "seed": player.seed,
        "has_custom_modules": player.has_custom_modules,
        "network": player.config.to_json(),
        "search": player.search.to_json(),
    }


def load_player(
    directory: str | os.PathLike[str],
    modules: CustomModules | None = None,
    *,
    most: int | None = None,
) -> TrainedPlayer:
    """Loads a player that `save_player` wrote.

    Args:
        directory: a player directory or a run directory; a URL names one in an object
            store.
        modules: the user's own modules of the network; ignored for a network without.
        most: maximum bytes of the weights as float32, of a player of unknown origin.
            None: `LARGEST_WEIGHT_BYTES`, and own modules of the network need not be
            traceable.

    Raises:
        MissingModulesError: `modules` are required.
        ValueError: the player is missing, damaged, too large or of an unknown version,
            or `modules` do not match.
    """
    directory = player_directory(directory)
    return load_player_file(directory / PLAYER_FILE, directory, modules, most=most)


def load_player_file(
    path: Directory,
    source: Source,
    modules: CustomModules | None = None,
    *,
    most: int | None = None,
) -> TrainedPlayer:
    """Loads a player from its file, as `load_player` does; messages name the source."""
    with _opened(path, source, most) as (file, header):
        return _read_player(file, header, source, modules, most)


def _read_player(
    file: BinaryIO,
    header: "Header",
    source: Source,
    modules: CustomModules | None,
    most: int | None,
) -> TrainedPlayer:
    config = header.settings
    _check_kind(source, config, None)
    with _reading_settings(source):
        config = check_format(config)
        check("seed", config["seed"], Seed)
        game = games.make(config["game"], **config["options"])
        search = SearchConfig.from_json(config["search"], "search.")
        most_nodes = MAX_REUSED_EDGES // num_edges(game)
        check_int("search.tree_reuse_nodes", search.tree_reuse_nodes, 0, most_nodes)
        network_config = from_json(NetworkConfig, config["network"], "network.")
    seed = config["seed"]
    has_custom_modules = bool(config.get("has_custom_modules", False))
    if has_custom_modules and modules is None:
        raise MissingModulesError(
            f"the network in {source} has modules of the user's own, which must be "
            "passed again: modules=... in Python, --modules MODULE:NAME on the command "
            "line, where NAME in MODULE.py is an azjax.networks.CustomModules"
        )
    described = (
        game.observation_shape,
        game.num_actions,
        game.actions_per_cell,
        network_config,
    )
    if not has_custom_modules:
        with _reading_settings(source):
            network, shapes = _traced_network(*described)
    elif most is None:  # the user's own modules need not be traceable
        network, shapes = first_network(seed, game, network_config, modules)
    else:  # of any size, and may not be hashable
        network, shapes = _traced_network.__wrapped__(*described, modules)
    return TrainedPlayer(
        game=game,
        network=network,
        variables=_read_weights(file, header, shapes, source, most),
        config=network_config,
        search=search,
        seed=seed,
        has_custom_modules=has_custom_modules,
    )


def first_network(
    seed: int,
    game: games.Game,
    config: NetworkConfig,
    modules: CustomModules | None = None,
) -> tuple[Network, Variables]:
    """Builds the untrained network of a run with this seed.

    Raises:
        ValueError: the settings do not fit the game.
    """
    if config.line_length and not game.line_length:
        raise ValueError(
            "network.line_length must be 0 for a game that is not won by lines of a "
            f"length or more, such as {game!r}: {config.line_length}"
        )
    # In one program, except for the user's own modules, which need not be traceable.
    return _built(
        lambda make: jax.jit(make)() if modules is None else make(),
        lambda: init_network(
            jax.random.key(seed),
            game.observation_shape,
            game.num_actions,
            config,
            modules,
            actions_per_cell=game.actions_per_cell,
        ),
    )


@functools.lru_cache(maxsize=32)  # many runs have the same network
def _traced_network(
    observation_shape: tuple[int, int, int],
    num_actions: int,
    actions_per_cell: int,
    config: NetworkConfig,
    modules: CustomModules | None = None,
) -> tuple[Network, Variables]:
    """Returns the network of a player and the shapes of its arrays, without computing;
    `modules` are the user's own modules, traceable by JAX."""
    return _built(
        jax.eval_shape,
        lambda: init_network(
            jax.random.key(0),
            observation_shape,
            num_actions,
            config,
            modules,
            actions_per_cell=actions_per_cell,
        ),
    )


def _built(
    run: Callable[[Callable[[], V]], V], make: Callable[[], tuple[S, V]]
) -> tuple[S, V]:
    """Returns a network's structure, as `make` returns it, and its arrays, as `run`
    returns them, which calls a function that returns the arrays of `make`."""
    structures: list[S] = []

    def arrays() -> V:
        structure, variables = make()
        structures.append(structure)
        return variables

    variables = run(arrays)
    return structures[0], variables


@dataclasses.dataclass(frozen=True)
class TrainedQ:
    """Learned action values with their game.

    network, params: the network and its parameters.
    config: configuration of the network.
    """

    game: games.Game
    network: QNetwork = dataclasses.field(repr=False)
    params: QParams = dataclasses.field(repr=False)
    config: QNetworkConfig

    def player(self, epsilon: float = 0.0) -> QPlayer:
        """Returns a player that follows the action values; `epsilon` is the probability
        of a random move."""
        return QPlayer(self.game, self.network, self.params, epsilon)


def save_q_player(directory: Path, trained: TrainedQ) -> None:
    """Writes a player, atomically; the directory is created if missing."""
    config = {
        "format": FORMAT,
        "kind": Q_LEARNING,
        "game": trained.game.name,
        "options": trained.game.options,
        "network": {
            "form": trained.config.form,
            "hidden": trained.config.layers,
            "separate": trained.config.separate,
        },
    }
    content = _file_bytes(config, trained.params, "float32")
    replace_file(directory / PLAYER_FILE, content)


def load_q_player(
    directory: str | os.PathLike[str], *, most: int | None = None
) -> TrainedQ:
    """Loads a player that `save_q_player` wrote.

    Args:
        directory: a player directory or a run directory; a URL names one in an object
            store.
        most: maximum bytes of the weights as float32; None: `LARGEST_WEIGHT_BYTES`.

    Raises:
        ValueError: the player is missing, damaged, too large, of an unknown version or
            not from Q-learning.
    """
    directory = player_directory(directory)
    path = directory / PLAYER_FILE
    with _opened(path, directory, most) as (file, header):
        _check_kind(directory, header.settings, Q_LEARNING)
        with _reading_settings(directory):
            config = check_format(header.settings)
            game = games.make(config["game"], **config["options"])
            network_config = QNetworkConfig(
                form=config["network"]["form"],
                hidden=tuple(config["network"]["hidden"]),
                separate=config["network"]["separate"],
            )
        network, shapes = _built(
            jax.eval_shape,
            lambda: init_q_network(
                jax.random.key(0),
                game.observation_shape,
                game.num_actions,
                network_config,
            ),
        )
        params = _read_weights(file, header, shapes, directory, most)
    return TrainedQ(game, network, params, network_config)


# The file


def player_directory(directory: str | os.PathLike[str]) -> Directory:
    """Returns the directory of a player's file: the directory itself, or in a run
    directory its `player`.

    Raises:
        ValueError: the URL is not supported.
        OSError: the object store cannot be read.
    """
    directory = as_directory(directory)
    with store_errors(directory):
        is_run = (directory / "player").is_dir()
    return directory / "player" if is_run else directory


def _file_bytes(config: Mapping[str, Any], variables: Any, dtype: str) -> bytes:
    arrays = {
        name: np.asarray(value, dtype, order="C")
        for name, value in named_leaves(variables).items()
    }
    return safetensors.numpy.save(arrays, metadata={SETTINGS_KEY: json.dumps(config)})


class Header(NamedTuple):
    """What the header of a player's file says; none of it is checked.

    settings: JSON of any form.
    arrays: dtype, such as `F32`, and shape by name.
    num_bytes: of the file up to the arrays.
    """

    settings: Any
    arrays: dict[str, tuple[str, tuple[int, ...]]]
    num_bytes: int


@contextlib.contextmanager
def _opened(
    path: Directory, source: Source, most: int | None = None
) -> Iterator[tuple[BinaryIO, Header]]:
    """A context with a player's file, of which only the header has been read.

    Raises:
        ValueError: the file is missing, damaged or too large.
    """
    with _reading_file(source):
        largest = 8 + MAX_HEADER_BYTES + (most or LARGEST_WEIGHT_BYTES)
        opened = open_regular(path, largest)
    with opened as file:
        with _reading_file(source):
            header = _read_header(file)
        yield file, header


def _read_header(file: BinaryIO) -> Header:
    # The length of the header, then the header, then the arrays.
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= MAX_HEADER_BYTES:
        raise ValueError(
            f"its header must have from 1 to {MAX_HEADER_BYTES} bytes: {length}"
        )
    content = json.loads(file.read(length))
    metadata = content.pop("__metadata__", {}) if isinstance(content, dict) else {}
    text = metadata.get(SETTINGS_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ValueError("its header has no settings of azjax")
    if len(text) > MAX_CONFIG_BYTES:
        raise ValueError(f"its settings have more than {MAX_CONFIG_BYTES} characters")
    arrays = {
        name: (str(about["dtype"])[:20], tuple(about["shape"]))
        for name, about in content.items()
    }
    return Header(json.loads(text), arrays, 8 + length)


def read_settings(directory: Directory) -> Any:
    """Returns the settings of the player in a directory: JSON of any form.

    Raises:
        ValueError: the file is missing, damaged or too large.
    """
    with _opened(directory / PLAYER_FILE, directory) as (_, header):
        return header.settings


@contextlib.contextmanager
def _reading_file(source: Source) -> Iterator[None]:
    """Converts errors of a missing or damaged file to ValueErrors with its source."""
    try:
        yield
    except FileNotFoundError:
        is_missing = isinstance(source, Path) and not source.exists()
        where = f"{source}, which does not exist" if is_missing else str(source)
        raise ValueError(
            f"no player in {where}: training writes {PLAYER_FILE} there"
        ) from None
    except Exception as error:  # of a damaged file the library raises any
        if not isinstance(source, str | Path) and store_problem(error):
            raise
        problem = printable(str(error), MAX_MESSAGE)
        raise ValueError(f"the player in {source} is damaged: {problem}") from error


def _read_weights(
    file: BinaryIO, header: Header, shapes: V, source: Source, most: int | None
) -> V:
    """Returns the arrays of a file as float32, in a pytree like `shapes`. They are read
    once the header shows that they are those of the network, and not too large."""
    expected = {name: leaf.shape for name, leaf in named_leaves(shapes).items()}
    most = most or LARGEST_WEIGHT_BYTES
    num_bytes = 4 * sum(math.prod(shape) for shape in expected.values())
    if num_bytes > most:
        raise ValueError(
            f"the network described in {source} takes {num_bytes} bytes; at most "
            f"{most} are loaded"
        )
    for name in sorted(expected.keys() | header.arrays.keys()):
        dtype, found = header.arrays.get(name, ("F32", None))
        problem, shape = "", expected.get(name)
        if found != shape:
            problem = f"{name[:80]} is {str(found)[:80]}, expected {shape}"
        elif dtype not in DTYPES:
            problem = f"{name} is of {dtype}, expected {' or '.join(DTYPES)}"
        if problem:
            raise ValueError(
                f"the weights in {source} do not fit the network described there: "
                f"{printable(problem)}; a network with modules of your own needs "
                "them, and a player from before the observation of its game changed "
                "needs the version of azjax that made it"
            )
    with _reading_file(source):
        file.seek(0)
        # One byte more than the largest file of these arrays.
        arrays = safetensors.numpy.load(file.read(header.num_bytes + num_bytes + 1))
        values = [arrays[name].astype(np.float32) for name in expected]
        for name, array in zip(expected, values, strict=True):
            if array.shape != expected[name]:  # the header has two of this name
                raise ValueError(f"{name} is {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has values that are not finite")
    return jax.tree.unflatten(jax.tree.structure(shapes), jax.device_put(values))


def named_leaves(variables: Any) -> dict[str, Any]:
    """Returns the leaves of a pytree of weights by their paths, joined by `/`, in the
    order of the tree."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): value
        for path, value in jax.tree.leaves_with_path(variables)
    }


def _check_kind(source: Source, config: Any, kind: str | None) -> None:
    """Checks the kind of a player; None is AlphaZero."""
    found = config.get("kind") if isinstance(config, dict) else None
    if found != kind:
        texts = "network:RUN or alphazero:RUN"
        if found:
            texts = f"{printable(str(found), 40)}:RUN"
        raise ValueError(
            f"the player in {source} was trained by another algorithm; load it as "
            f"{texts}"
        )


@contextlib.contextmanager
def _reading_settings(source: Source) -> Iterator[None]:
    """Converts errors from a player's settings to ValueErrors with its source."""
    try:
        yield
        return
    except games.UnknownGameError as error:
        raise ValueError(
            f"the player in {source} is for the unknown game {error.name[:40]!r}: "
            "run the file that registers the game, as python FILE play ..."
        ) from None
    except KeyError as error:
        problem = f"its settings lack {error}"
    except (TypeError, ValueError) as error:
        problem = printable(str(error), MAX_MESSAGE)
    raise ValueError(
        f"the player in {source} does not fit this version of azjax: {problem}"
    )


# Players that ship


def shipped_players() -> Path:
    """Returns the directory of the pretrained players, one for each game."""
    return Path(str(importlib.resources.files("azjax.players") / PRETRAINED))


def pretrained_directory(game: games.Game) -> Path:
    """Returns the directory of the pretrained player for a game and its options.

    Raises:
        ValueError: there is none.
    """
    shipped = shipped_players()
    names = sorted(path.parent.name for path in shipped.glob(f"*/{PLAYER_FILE}"))
    name = shipped_name(game)
    if name not in names:
        specs = ", ".join(name.replace("-", ":", 1) for name in names) or "none"
        raise ValueError(
            f"there is no pretrained player for {game}; there is one for: {specs}"
        )
    return shipped / name


def shipped_name(game: games.Game) -> str:
    """Returns the name of the directory of a game's pretrained player: its spec, with a
    hyphen for the colon, which Windows does not allow."""
    return repr(game).replace(":", "-")
