"""The `player/` directory: what a trained player needs to be loaded, nothing else."""

import contextlib
import dataclasses
import importlib.resources
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from azjax import games
from azjax.networks import Network, NetworkConfig, Parts, Variables, init_network
from azjax.search import SearchConfig

FORMAT = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.npz"
PRETRAINED = "pretrained"

V = TypeVar("V")


@dataclasses.dataclass(frozen=True)
class TrainedPlayer:
    """A trained network with its game and search.

    network, variables: what was learnt.
    config: how the network is made.
    search: how it searched when it learnt.
    seed: from which its first parameters were drawn.
    has_own_parts: whether modules of the user's own are in the network.
    """

    game: games.Game
    network: Network
    variables: Variables
    config: NetworkConfig
    search: SearchConfig
    seed: int
    has_own_parts: bool = False


class _Settings(NamedTuple):
    game: games.Game
    network: NetworkConfig
    search: SearchConfig
    seed: int
    has_own_parts: bool


class _Leaf(NamedTuple):
    name: str
    shape: tuple[int, ...]


def first_network(
    seed: int,
    game: games.Game,
    config: NetworkConfig,
    parts: Parts | None = None,
) -> tuple[Network, Variables]:
    """Builds the network with which a run of this seed begins."""
    return init_network(
        jax.random.key(seed), game.observation_shape, game.num_actions, config, parts
    )


def save_player(
    directory: Path, player: TrainedPlayer, *, dtype: str = "float32"
) -> None:
    """Writes a player, file by file, so that a reader never sees half of one.

    Args:
        directory: made if it is not there.
        player: what to write.
        dtype: of the weights on disk; `float16` halves their size.
    """
    config = {
        "format": FORMAT,
        "game": player.game.name,
        "options": player.game.options,
        "seed": player.seed,
        "has_own_parts": player.has_own_parts,
        "network": dataclasses.asdict(player.config),
        "search": dataclasses.asdict(player.search),
    }
    write_files(directory, config, player.variables, dtype=dtype)


def write_files(
    directory: Path, config: Mapping[str, Any], variables: Any, *, dtype: str
) -> None:
    """Writes a player's settings and a pytree of weights, as `save_player` does."""
    directory.mkdir(parents=True, exist_ok=True)
    weights: dict[str, Any] = {
        leaf.name: np.asarray(value, dtype)
        for leaf, value in zip(
            _leaves(variables), jax.tree.leaves(variables), strict=True
        )
    }
    partial = directory / f".{WEIGHTS_FILE}"
    with partial.open("wb") as file:
        np.savez_compressed(file, **weights)
    partial.replace(directory / WEIGHTS_FILE)
    partial = directory / f".{CONFIG_FILE}"
    partial.write_text(json.dumps(config, indent=2) + "\n")
    partial.replace(directory / CONFIG_FILE)


class MissingPartsError(ValueError):
    """A network was made with modules of the user's own, which are not given."""


def load_player(
    directory: str | os.PathLike[str], parts: Parts | None = None
) -> TrainedPlayer:
    """Reads a player that `save_player` wrote.

    Args:
        directory: a player's directory, or a run's, which has one in it.
        parts: the modules of the user's own with which the network was made; not used
            for a network that was made without any.

    Raises:
        MissingPartsError: `parts` are needed.
        ValueError: there is no player, it is damaged or of another version, or `parts`
            are others.
    """
    directory, config, weights = read_files(directory)
    check_kind(directory, config, None)
    settings = _read_settings(config, directory)
    if settings.has_own_parts and parts is None:
        raise MissingPartsError(
            f"the network in {directory} was made with modules of the user's own, "
            "which are needed again: parts=... in Python, --parts MODULE:NAME on the "
            "command line, where NAME in MODULE.py is an azjax.networks.Parts"
        )
    own_parts = parts if settings.has_own_parts else None
    network, variables = first_network(
        settings.seed, settings.game, settings.network, own_parts
    )
    return TrainedPlayer(
        game=settings.game,
        network=network,
        variables=fill(variables, weights, directory),
        config=settings.network,
        search=settings.search,
        seed=settings.seed,
        has_own_parts=settings.has_own_parts,
    )


def read_files(
    directory: str | os.PathLike[str],
) -> tuple[Path, Any, dict[str, np.ndarray]]:
    """Reads what `write_files` wrote.

    Args:
        directory: a player's directory, or a run's.

    Returns:
        The player's directory, its settings, and the weights by name.

    Raises:
        ValueError: there is no player, or it is damaged.
    """
    directory = Path(directory)
    if (directory / "player").is_dir():
        directory = directory / "player"
    try:
        config = json.loads((directory / CONFIG_FILE).read_text())
        # Given a path, NumPy leaves the file open when it is damaged.
        with (directory / WEIGHTS_FILE).open("rb") as file:
            weights = dict(np.load(file, allow_pickle=False))
    except FileNotFoundError:
        raise ValueError(
            f"no player in {directory}: {CONFIG_FILE} and {WEIGHTS_FILE} are written "
            "there by training"
        ) from None
    except Exception as error:
        raise ValueError(f"the player in {directory} is damaged: {error}") from error
    return directory, config, weights


def check_kind(directory: Path, config: Any, kind: str | None) -> None:
    """Checks that a player is of a kind; None stands for AlphaZero's.

    Raises:
        ValueError: it is of another.
    """
    found = config.get("kind") if isinstance(config, dict) else None
    if found != kind:
        texts = f"{found}:RUN" if found else "network:RUN or alphazero:RUN"
        raise ValueError(
            f"the player in {directory} learnt in another way; as a player it is "
            f"{texts}"
        )


def shipped_players() -> Path:
    """Returns the directory of the players that ship with azjax, one for each game."""
    return Path(str(importlib.resources.files("azjax.players") / PRETRAINED))


def pretrained_directory(game: str) -> Path:
    """Returns where the player that ships for a game lies.

    Raises:
        ValueError: none ships for it.
    """
    shipped = shipped_players()
    names = sorted(path.parent.name for path in shipped.glob(f"*/{CONFIG_FILE}"))
    if game not in names:
        raise ValueError(
            f"no pretrained player ships for {game!r}; one does for: "
            f"{', '.join(names) or 'none'}"
        )
    return shipped / game


@contextlib.contextmanager
def reading_settings(directory: Path) -> Iterator[None]:
    """A context in which what a player's settings lack, or have wrong, is a ValueError
    that names the directory."""
    try:
        yield
        return
    except games.UnknownGameError as error:
        raise ValueError(
            f"the player in {directory} is for the game {error.name[:40]!r}, which is "
            "not known here: define it by running its own file, as python FILE play ..."
        ) from None
    except KeyError as error:
        problem = f"{CONFIG_FILE} lacks {error}"
    except (TypeError, ValueError) as error:
        problem = str(error)
    raise ValueError(
        f"the player in {directory} does not fit this version of azjax: {problem}"
    )


def check_format(config: Any) -> None:
    """Checks the version of a player's settings.

    Raises:
        ValueError: it is another.
    """
    if config["format"] != FORMAT:
        raise ValueError(f"its format is {config['format']!r}, not {FORMAT}")


def _read_settings(config: Any, directory: Path) -> _Settings:
    with reading_settings(directory):
        check_format(config)
        return _Settings(
            game=games.make(config["game"], **config["options"]),
            network=NetworkConfig(**config["network"]),
            search=SearchConfig(**config["search"]),
            seed=int(config["seed"]),
            has_own_parts=bool(config.get("has_own_parts", False)),
        )


def _leaves(variables: Any) -> list[_Leaf]:
    return [
        _Leaf(jax.tree_util.keystr(path, simple=True, separator="/"), value.shape)
        for path, value in jax.tree.leaves_with_path(variables)
    ]


def fill(variables: V, weights: dict[str, np.ndarray], directory: Path) -> V:
    """Returns a pytree like `variables`, with weights that `read_files` read.

    Raises:
        ValueError: they have other names or shapes.
    """
    expected = {leaf.name: leaf.shape for leaf in _leaves(variables)}
    found = {name: value.shape for name, value in weights.items()}
    if expected != found:
        names = sorted(
            name
            for name in expected.keys() | found.keys()
            if expected.get(name) != found.get(name)
        )
        raise ValueError(
            f"the weights in {directory} do not fit the network described there "
            f"(a network with modules of your own needs them again): {names[0]} is "
            f"{found.get(names[0])}, expected {expected.get(names[0])}"
        )
    leaves = [jax.numpy.asarray(weights[name].astype(np.float32)) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(variables), leaves)
