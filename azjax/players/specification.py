"""Players named by text: `random`, `network:RUN`, `alphazero:RUN?simulations=200`."""

import dataclasses
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from azjax.games import Game
from azjax.players.alphazero import AlphaZeroPlayer
from azjax.players.core import Player
from azjax.players.directory import (
    PRETRAINED,
    TrainedPlayer,
    load_player,
    pretrained_directory,
)
from azjax.players.network import NetworkPlayer
from azjax.players.random import RandomPlayer
from azjax.search import SearchConfig

KINDS = "random, network:RUN, alphazero:RUN, alphazero:RUN?simulations=N"
SETTINGS = ("simulations", "algorithm", "leaves_per_step", "kept_nodes", "proves")
DEFAULT_SIMULATIONS = 64
MAX_SIMULATIONS = 100_000


def load(spec: str, game: Game | None = None) -> Player:
    """Builds the player that a text names.

    `random` needs a game; `network:RUN` follows a trained network's policy, and
    `alphazero:RUN?simulations=N` searches with it. RUN is a run's directory, a player's
    directory, or `pretrained`, which needs a game. After the `?` may stand, joined by
    `&`, `simulations` and the settings of `SearchConfig` that concern play:
    `algorithm`, `leaves_per_step`, `kept_nodes` and `proves` (`true` or `false`); those
    not named are as the run had them.

    Raises:
        ValueError: the text names no player, or the player is for another game.
    """
    name, _, query = spec.partition("?")
    kind, colon, source = name.partition(":")
    if kind not in ("random", "network", "alphazero") or (
        (kind == "random") == bool(colon) or bool(colon) != bool(source)
    ):
        raise ValueError(f"unknown player {spec!r}; players are {KINDS}")
    given = parse_qsl(query, keep_blank_values=True)
    settings = dict(given)
    allowed = SETTINGS if kind == "alphazero" else ()
    for key in settings:
        if key not in allowed:
            known = (
                f"its settings are {', '.join(allowed)}" if allowed else "it has none"
            )
            raise ValueError(f"player {spec!r} has no setting {key!r}; {known}")
    if len(settings) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"player {spec!r} has the setting {twice!r} twice")
    if kind == "random":
        if game is None:
            raise ValueError("the player 'random' needs to know the game")
        return RandomPlayer(game)
    simulations = _number(spec, settings, "simulations", 1, DEFAULT_SIMULATIONS)
    _changed(spec, settings, SearchConfig())  # finds mistakes before anything is loaded
    trained = load_run(source, game)
    if kind == "network":
        return NetworkPlayer(trained.game, trained.network, trained.variables)
    return AlphaZeroPlayer(
        game=trained.game,
        search=_changed(spec, settings, trained.search),
        simulations=simulations,
        network=trained.network,
        variables=trained.variables,
    )


def load_run(source: str, game: Game | None = None) -> TrainedPlayer:
    """Loads a run's trained player.

    Args:
        source: a run's directory, a player's directory, or `pretrained`.
        game: the game that it must be for; `pretrained` needs it.

    Raises:
        ValueError: there is none, or it is for another game.
    """
    if source == PRETRAINED:
        if game is None:
            raise ValueError("'pretrained' needs to know the game: --game NAME")
        trained = load_player(pretrained_directory(game.name))
    else:
        trained = load_player(Path(source))
    if game is not None and trained.game != game:
        raise ValueError(
            f"the player in {source} is for {trained.game}, not for {game}"
        )
    return trained


def _changed(spec: str, settings: dict[str, str], search: SearchConfig) -> SearchConfig:
    """Returns the run's search with what the text says of it."""

    def one_of(name: str, allowed: tuple[str, ...], default: str) -> Any:
        value = settings.get(name, default)
        if value not in allowed:
            raise ValueError(
                f"{name} must be {' or '.join(allowed)} in player {spec!r}: {value!r}"
            )
        return value

    algorithm = one_of("algorithm", ("gumbel", "alphazero"), search.algorithm)
    if algorithm == "gumbel":  # what is for PUCT alone goes with it
        search = dataclasses.replace(
            search, forced_playouts=0.0, first_play_reduction=None
        )
    proves = one_of("proves", ("true", "false"), str(search.proves).lower())
    return dataclasses.replace(
        search,
        algorithm=algorithm,
        proves=proves == "true",
        leaves_per_step=_number(
            spec, settings, "leaves_per_step", 1, search.leaves_per_step
        ),
        kept_nodes=_number(spec, settings, "kept_nodes", 0, search.kept_nodes),
    )


def _number(
    spec: str, settings: dict[str, str], name: str, low: int, default: int
) -> int:
    text = settings.get(name, str(default))
    is_number = text.isdecimal() and len(text) <= len(str(MAX_SIMULATIONS))
    if not is_number or not low <= int(text) <= MAX_SIMULATIONS:
        raise ValueError(
            f"{name} must be a whole number from {low} to {MAX_SIMULATIONS} in player "
            f"{spec!r}: {text!r}"
        )
    return int(text)
