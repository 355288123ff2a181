"""The `player/` directory: what a trained player needs to be loaded, nothing else."""

import dataclasses
import importlib.resources
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax import games
from azjax.networks import Network, NetworkConfig, Parts, Variables, init_network
from azjax.search import SearchConfig

FORMAT = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.npz"
PRETRAINED = "pretrained"


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
    directory.mkdir(parents=True, exist_ok=True)
    config = {
        "format": FORMAT,
        "game": player.game.name,
        "options": player.game.options,
        "seed": player.seed,
        "has_own_parts": player.has_own_parts,
        "network": dataclasses.asdict(player.config),
        "search": dataclasses.asdict(player.search),
    }
    weights: dict[str, Any] = {
        leaf.name: np.asarray(value, dtype)
        for leaf, value in zip(
            _leaves(player.variables), jax.tree.leaves(player.variables), strict=True
        )
    }
    partial = directory / f".{WEIGHTS_FILE}"
    with partial.open("wb") as file:
        np.savez_compressed(file, **weights)
    partial.replace(directory / WEIGHTS_FILE)
    partial = directory / f".{CONFIG_FILE}"
    partial.write_text(json.dumps(config, indent=2) + "\n")
    partial.replace(directory / CONFIG_FILE)


def load_player(directory: Path, parts: Parts | None = None) -> TrainedPlayer:
    """Reads a player that `save_player` wrote.

    Args:
        directory: a player's directory, or a run's, which has one in it.
        parts: the modules of the user's own with which the network was made.

    Raises:
        ValueError: there is no player, it is damaged or of another version, or `parts`
            are missing or others.
    """
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
    settings = _read_settings(config, directory)
    if settings.has_own_parts and parts is None:
        raise ValueError(
            f"the network in {directory} was made with modules of the user's own, "
            "which load_player needs as `parts`"
        )
    network, variables = first_network(
        settings.seed, settings.game, settings.network, parts
    )
    return TrainedPlayer(
        game=settings.game,
        network=network,
        variables=_fill(variables, weights, directory),
        config=settings.network,
        search=settings.search,
        seed=settings.seed,
        has_own_parts=parts is not None,
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


def _read_settings(config: Any, directory: Path) -> _Settings:
    try:
        if config["format"] != FORMAT:
            raise ValueError(f"its format is {config['format']!r}, not {FORMAT}")
        return _Settings(
            game=games.make(config["game"], **config["options"]),
            network=NetworkConfig(**config["network"]),
            search=SearchConfig(**config["search"]),
            seed=int(config["seed"]),
            has_own_parts=bool(config.get("has_own_parts", False)),
        )
    except KeyError as error:
        problem = f"{CONFIG_FILE} lacks {error}"
    except (TypeError, ValueError) as error:
        problem = str(error)
    raise ValueError(
        f"the player in {directory} does not fit this version of azjax: {problem}"
    )


def _leaves(variables: Variables) -> list[_Leaf]:
    return [
        _Leaf(jax.tree_util.keystr(path, simple=True, separator="/"), value.shape)
        for path, value in jax.tree.leaves_with_path(variables)
    ]


def _fill(
    variables: Variables, weights: dict[str, np.ndarray], directory: Path
) -> Variables:
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
