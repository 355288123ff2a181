"""Settings of saved players, and the networks that they describe."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import jax

from azjax import games
from azjax.checks import printable
from azjax.networks import Network, NetworkConfig, Parts, Variables, init_network

MAX_MESSAGE = 500  # characters

S = TypeVar("S")
V = TypeVar("V")
Source: TypeAlias = str | os.PathLike[str]  # of a player, for messages


class MissingPartsError(ValueError):
    """A network has modules of the user's own, which were not passed."""


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
    game: games.Game, config: NetworkConfig, parts: Parts | None = None
) -> tuple[Network, Variables]:
    """Returns the network of a player and the shapes of its arrays, without computing;
    `parts` are the user's own modules, traceable by JAX."""
    # Own modules may not be hashable.
    shapes = _shapes if parts is None else _shapes.__wrapped__
    return shapes(
        game.observation_shape,
        game.num_actions,
        game.actions_per_cell,
        config,
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
