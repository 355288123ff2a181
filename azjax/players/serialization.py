"""The `player/` directory: the files from which a trained player is loaded."""

import contextlib
import dataclasses
import functools
import importlib.resources
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from azjax import games
from azjax.checks import check_int, check_seed, printable
from azjax.config_registry import record_from_json
from azjax.networks import (
    Network,
    NetworkConfig,
    Parts,
    QNetwork,
    QNetworkConfig,
    QParams,
    Variables,
    init_q_network,
)
from azjax.players.alphazero import AlphaZeroPlayer
from azjax.players.edges import num_edges
from azjax.players.q_learning import QPlayer
from azjax.players.saved_settings import (
    MAX_MESSAGE,
    MissingPartsError,
    Source,
    check_kind,
    first_network,
    reading_settings,
    shapes_of,
    traced_network,
)
from azjax.players.schema import VERSION, migrate
from azjax.players.weights import MismatchError, read_weights
from azjax.remote import (
    Directory,
    as_directory,
    is_remote,
    open_regular,
    replace_file,
    store_errors,
    store_problem,
)
from azjax.search import SearchConfig

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.npz"
PRETRAINED = "pretrained"
Q_LEARNING = "q_learning"  # kind of a player

MAX_CONFIG_BYTES = 2**20
LARGEST_WEIGHT_BYTES = 2**31  # as float32
MAX_REUSED_EDGES = 2**24  # of a tree that is kept; each takes about 100 bytes

V = TypeVar("V")


@dataclasses.dataclass(frozen=True)
class TrainedPlayer:
    """A trained network with its game and search.

    network, variables: the network and its arrays.
    config: configuration of the network.
    search: search settings of training.
    seed: seed of the initial parameters.
    has_own_parts: whether the network has modules of the user's own.
    """

    game: games.Game
    network: Network = dataclasses.field(repr=False)
    variables: Variables = dataclasses.field(repr=False)
    config: NetworkConfig
    search: SearchConfig
    seed: int
    has_own_parts: bool = False

    def player(self, simulations: int) -> AlphaZeroPlayer:
        """Returns a player that makes so many simulations per move."""
        return AlphaZeroPlayer(
            self.game, self.search, simulations, self.network, self.variables
        )


def save_player(
    directory: Path, player: TrainedPlayer, *, dtype: str = "float32"
) -> None:
    """Writes a player; each file is replaced atomically.

    Args:
        directory: created if missing.
        player: the player.
        dtype: dtype of the weights on disk; `float16` halves their size.
    """
    write_files(directory, config_of(player), player.variables, dtype=dtype)


def config_of(player: TrainedPlayer) -> dict[str, Any]:
    """Returns a player's settings as JSON values."""
    return {
        "format": VERSION,
        "game": player.game.name,
        "options": player.game.options,
        "seed": player.seed,
        "has_own_parts": player.has_own_parts,
        "network": player.config.to_json(),
        "search": player.search.to_json(),
    }


def write_files(
    directory: Path, config: Mapping[str, Any], variables: Any, *, dtype: str
) -> None:
    """Writes a player's settings and a pytree of weights, as `save_player` does."""
    weights: dict[str, Any] = {
        name: np.asarray(value, dtype)
        for name, value in named_leaves(variables).items()
    }
    file = io.BytesIO()
    np.savez_compressed(file, **weights)
    replace_file(directory / WEIGHTS_FILE, file.getvalue())
    replace_file(
        directory / CONFIG_FILE, (json.dumps(config, indent=2) + "\n").encode()
    )


def load_player(
    directory: str | os.PathLike[str],
    parts: Parts | None = None,
    *,
    most: int | None = None,
) -> TrainedPlayer:
    """Loads a player that `save_player` wrote.

    Args:
        directory: a player directory or a run directory; a URL names one in an object
            store.
        parts: the user's own modules of the network; ignored for a network without any.
        most: maximum bytes of the weights as float32, of a player of unknown origin.
            None: `LARGEST_WEIGHT_BYTES`, and own modules of the network need not be
            traceable.

    Raises:
        MissingPartsError: `parts` are required.
        ValueError: the player is missing, damaged, too large or of an unknown version,
            or `parts` do not match.
    """
    directory, config = read_config(directory)
    return player_of(
        config,
        directory,
        functools.partial(read_variables, directory, most=most),
        parts,
        # With a limit, the sizes are untrusted, and the network is not built.
        is_trusted=most is None,
    )


def player_of(
    config: Any,
    source: Source,
    read: Callable[[Variables], Variables],
    parts: Parts | None = None,
    *,
    is_trusted: bool,
) -> TrainedPlayer:
    """Builds the player that settings describe.

    Args:
        config: the settings as JSON values.
        source: of the player, for messages.
        read: reads the weights; receives arrays or objects with a `shape`.
        parts: the user's own modules of the network; ignored for a network without any.
        is_trusted: False if the network may be too large to be built.

    Raises:
        MissingPartsError: `parts` are required.
        ValueError: the settings are invalid, or errors of `read`.
    """
    check_kind(source, config, None)
    with reading_settings(source):
        config = migrate(config)
        check_seed("seed", config["seed"])
        game = games.make(config["game"], **config["options"])
        search = SearchConfig.from_json(config["search"], "search.")
        most = MAX_REUSED_EDGES // num_edges(game)
        check_int("search.tree_reuse_nodes", search.tree_reuse_nodes, 0, most)
        network_config = record_from_json(NetworkConfig, config["network"], "network.")
    seed, has_own_parts = config["seed"], bool(config.get("has_own_parts", False))
    if has_own_parts and parts is None:
        raise MissingPartsError(
            f"the network in {source} has modules of the user's own, which must be "
            "passed again: parts=... in Python, --parts MODULE:NAME on the command "
            "line, where NAME in MODULE.py is an azjax.networks.Parts"
        )
    own_parts = parts if has_own_parts else None
    if own_parts is None:
        with reading_settings(source):
            network, shapes = traced_network(game, network_config)
    elif is_trusted:  # the user's own modules need not be traceable
        network, shapes = first_network(seed, game, network_config, own_parts)
    else:
        network, shapes = traced_network(game, network_config, own_parts)
    return TrainedPlayer(
        game=game,
        network=network,
        variables=read(shapes),
        config=network_config,
        search=search,
        seed=seed,
        has_own_parts=has_own_parts,
    )


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
    """Writes a player; each file is replaced atomically.

    Args:
        directory: created if missing.
        trained: the player.
    """
    config = {
        "format": VERSION,
        "kind": Q_LEARNING,
        "game": trained.game.name,
        "options": trained.game.options,
        "network": {
            "form": trained.config.form,
            "hidden": trained.config.layers,
            "separate": trained.config.separate,
        },
    }
    write_files(directory, config, trained.params, dtype="float32")


def load_q_player(
    directory: str | os.PathLike[str], *, most: int | None = None
) -> TrainedQ:
    """Loads a player that `save_q_player` wrote.

    Args:
        directory: a player directory or a run directory; a URL names one in an object
            store.
        most: maximum bytes of the weights as float32; None:
            `LARGEST_WEIGHT_BYTES`.

    Raises:
        ValueError: the player is missing, damaged, too large, of an unknown version or
            not from Q-learning.
    """
    directory, config = read_config(directory)
    check_kind(directory, config, Q_LEARNING)
    with reading_settings(directory):
        config = migrate(config)
        game = games.make(config["game"], **config["options"])
        network_config = QNetworkConfig(
            form=config["network"]["form"],
            hidden=tuple(config["network"]["hidden"]),
            separate=config["network"]["separate"],
        )
    network, shapes = shapes_of(
        lambda rng_key: init_q_network(
            rng_key, game.observation_shape, game.num_actions, network_config
        )
    )
    params = read_variables(directory, shapes, most=most)
    return TrainedQ(game, network, params, network_config)


def read_config(directory: str | os.PathLike[str]) -> tuple[Directory, Any]:
    """Reads the settings that `write_files` wrote.

    Args:
        directory: a player directory or a run directory; a URL names one in an object
            store.

    Returns:
        The player directory and its settings, which are not validated.

    Raises:
        ValueError: the player is missing or damaged, or the URL is not supported.
        OSError: the object store cannot be read.
    """
    directory = as_directory(directory)
    with store_errors(directory):
        is_run = (directory / "player").is_dir()
    if is_run:
        directory = directory / "player"
    with (
        _reading(directory),
        open_regular(directory / CONFIG_FILE, MAX_CONFIG_BYTES) as file,
    ):
        return directory, json.loads(file.read(MAX_CONFIG_BYTES))


def read_variables(directory: Directory, shapes: V, *, most: int | None = None) -> V:
    """Reads the weights that `write_files` wrote.

    Args:
        directory: the player directory.
        shapes: a pytree of arrays or of objects with a `shape`.
        most: maximum bytes of the weights as float32; None: `LARGEST_WEIGHT_BYTES`.

    Returns:
        A pytree like `shapes`, float32.
    """
    expected = {name: leaf.shape for name, leaf in named_leaves(shapes).items()}
    num_bytes = 4 * sum(math.prod(shape) for shape in expected.values())
    check_weight_bytes(num_bytes, directory, most or LARGEST_WEIGHT_BYTES)
    with _reading(directory):
        weights = read_weights(directory / WEIGHTS_FILE, expected)
    leaves = jax.device_put([weights[name] for name in expected])
    return jax.tree.unflatten(jax.tree.structure(shapes), leaves)


def check_weight_bytes(num_bytes: int, source: Source, most: int) -> None:
    """Checks the size of a network."""
    if num_bytes > most:
        raise ValueError(
            f"the network described in {source} takes {num_bytes} bytes; at most "
            f"{most} are loaded"
        )


@contextlib.contextmanager
def _reading(directory: Directory) -> Iterator[None]:
    """Converts errors of reading a player's files to ValueErrors with its directory."""
    try:
        yield
    except FileNotFoundError:
        is_missing = not is_remote(directory) and not directory.exists()
        where = f"{directory}, which does not exist" if is_missing else str(directory)
        raise ValueError(
            f"no player in {where}: training writes {CONFIG_FILE} and {WEIGHTS_FILE} "
            "there"
        ) from None
    except MismatchError as error:
        raise ValueError(
            f"the weights in {directory} do not fit the network described there: "
            f"{printable(str(error))}; a network with modules of your own needs its "
            "parts, and a player from before the observation of its game changed needs "
            "the version of azjax that made it"
        ) from None
    except Exception as error:
        if is_remote(directory) and store_problem(error):
            raise
        problem = printable(str(error), MAX_MESSAGE)
        raise ValueError(f"the player in {directory} is damaged: {problem}") from error


def shipped_players() -> Path:
    """Returns the directory of the pretrained players, one for each game."""
    return Path(str(importlib.resources.files("azjax.players") / PRETRAINED))


def pretrained_directory(game: games.Game) -> Path:
    """Returns the directory of the pretrained player for a game and its options.

    Raises:
        ValueError: there is none.
    """
    shipped = shipped_players()
    names = sorted(path.parent.name for path in shipped.glob(f"*/{CONFIG_FILE}"))
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


def named_leaves(variables: Any) -> dict[str, Any]:
    """Returns the leaves of a pytree of weights by their paths, joined by `/`, in the
    order of the tree."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): value
        for path, value in jax.tree.leaves_with_path(variables)
    }
