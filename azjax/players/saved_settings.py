"""Settings of saved players, and the networks that they describe."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax

from azjax import games
from azjax.checks import check_int, check_seed, printable
from azjax.networks import Network, NetworkConfig, Parts, Variables, init_network
from azjax.players.edges import num_edges
from azjax.players.schema import migrate
from azjax.records import record_from_json
from azjax.search import SearchConfig

MAX_MESSAGE = 500  # characters
MAX_REUSED_EDGES = 2**24  # of a tree that is kept; each takes about 100 bytes

S = TypeVar("S")
V = TypeVar("V")
Source: TypeAlias = str | os.PathLike[str]  # of a player, for messages


class MissingPartsError(ValueError):
    """A network has modules of the user's own, which were not passed."""


class SavedSettings(NamedTuple):
    """Settings of an AlphaZero player.

    has_own_parts: whether the network has modules of the user's own.
    """

    game: games.Game
    network: NetworkConfig
    search: SearchConfig
    seed: int
    has_own_parts: bool


def read_settings(config: Any, source: Source) -> SavedSettings:
    """Validates the settings of an AlphaZero player.

    Args:
        config: JSON values, which are migrated to the current version.
        source: of the player, for messages.
    """
    check_kind(source, config, None)
    with reading_settings(source):
        config = migrate(config)
        check_seed("seed", config["seed"])
        game = games.make(config["game"], **config["options"])
        search = SearchConfig.from_json(config["search"], "search.")
        most = MAX_REUSED_EDGES // num_edges(game)
        check_int("search.tree_reuse_nodes", search.tree_reuse_nodes, 0, most)
        return SavedSettings(
            game=game,
            network=record_from_json(NetworkConfig, config["network"], "network."),
            search=search,
            seed=config["seed"],
            has_own_parts=bool(config.get("has_own_parts", False)),
        )


def first_network(
    seed: int,
    game: games.Game,
    config: NetworkConfig,
    parts: Parts | None = None,
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
    networks: list[Network] = []

    def make() -> Variables:
        network, variables = init_network(
            jax.random.key(seed),
            game.observation_shape,
            game.num_actions,
            config,
            parts,
            actions_per_cell=game.actions_per_cell,
        )
        networks.append(network)
        return variables

    # In one program, except for the user's own modules, which need not be traceable.
    variables = jax.jit(make)() if parts is None else make()
    return networks[0], variables


def check_kind(source: Source, config: Any, kind: str | None) -> None:
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
def reading_settings(source: Source) -> Iterator[None]:
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


def traced_network(
    settings: SavedSettings, parts: Parts | None = None
) -> tuple[Network, Variables]:
    """Returns the network of a player and the shapes of its arrays, without computing.

    Args:
        settings: of the player.
        parts: the user's own modules, traceable by JAX.
    """
    game = settings.game
    # Own modules may not be hashable.
    shapes = _shapes if parts is None else _shapes.__wrapped__
    return shapes(
        game.observation_shape,
        game.num_actions,
        game.actions_per_cell,
        settings.network,
        parts,
    )


@functools.lru_cache(maxsize=32)  # many runs have the same network
def _shapes(
    observation_shape: tuple[int, int, int],
    num_actions: int,
    actions_per_cell: int,
    config: NetworkConfig,
    parts: Parts | None,
) -> tuple[Network, Variables]:
    return shapes_of(
        lambda rng_key: init_network(
            rng_key,
            observation_shape,
            num_actions,
            config,
            parts,
            actions_per_cell=actions_per_cell,
        )
    )


def shapes_of(make: Callable[[jax.Array], tuple[S, V]]) -> tuple[S, V]:
    """Returns a network's structure and the shapes of its arrays, without computing.

    Args:
        make: returns the structure and the arrays for a random key.
    """
    structures: list[S] = []

    def arrays() -> V:
        structure, variables = make(jax.random.key(0))
        structures.append(structure)
        return variables

    shapes = jax.eval_shape(arrays)
    return structures[0], shapes
