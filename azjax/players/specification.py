"""Players named by text: `random`, `network:RUN`, `alphazero:RUN?simulations=200`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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
from azjax.players.q_directory import load_q_player
from azjax.players.random import RandomPlayer
from azjax.players.seat import AnyPlayer, ExternalPlayer
from azjax.players.spec import Spec, needed, parse_settings
from azjax.search import SearchConfig

DEFAULT_SIMULATIONS = 64
MAX_SIMULATIONS = 100_000


class Kind(NamedTuple):
    """A kind of player.

    form: how it is written, the colon included if something must stand behind it.
    build: makes it from what the text says and the game, which may be None.
    settings: what may stand behind a question mark.
    is_verbatim: whether everything behind the colon is the argument, question marks
        included.
    """

    form: str
    build: Callable[[Spec, Game | None], AnyPlayer]
    settings: tuple[str, ...] = ()
    is_verbatim: bool = False


def load(spec: str, game: Game | None = None) -> AnyPlayer:
    """Builds the player that a text names.

    `random` needs a game; `network:RUN` follows a trained network's policy, and
    `alphazero:RUN?simulations=N` searches with it. RUN is a run's directory, a player's
    directory, or `pretrained`, which needs a game. After the `?` may stand, joined by
    `&`, `simulations` and the settings of `SearchConfig` that concern play:
    `algorithm`, `leaves_per_step`, `kept_nodes` and `proves` (`true` or `false`); those
    not named are as the run had them. `q_learning:RUN` follows the action values that
    `azjax train-q` learnt; `epsilon` is its share of random moves, by default 0.

    Raises:
        ValueError: the text names no player, or the player is for another game.
    """
    head, _, query = spec.partition("?")
    name, colon, argument = head.partition(":")
    kind = KINDS.get(name)
    if kind is not None and kind.is_verbatim:
        argument, query = spec.partition(":")[2], ""
    needs_argument = kind is not None and ":" in kind.form
    if kind is None or bool(colon) != needs_argument or bool(colon) != bool(argument):
        forms = ", ".join(kind.form for kind in KINDS.values())
        raise ValueError(f"unknown player {spec!r}; players are {forms}")
    settings = parse_settings(spec, query, kind.settings)
    return kind.build(Spec(spec, name, argument, settings), game)


def load_compiled(spec: str, game: Game | None = None) -> Player:
    """Builds a player, as `load` does, that can be compiled into larger functions.

    Raises:
        ValueError: as in `load`, or the player is a person or another program.
    """
    player = load(spec, game)
    if isinstance(player, ExternalPlayer):
        raise ValueError(f"the player {spec!r} plays one game at a time, not compiled")
    return player


def _random(spec: Spec, game: Game | None) -> Player:
    return RandomPlayer(needed(spec, game))


def _network(spec: Spec, game: Game | None) -> Player:
    trained = load_run(spec.argument, game)
    return NetworkPlayer(trained.game, trained.network, trained.variables)


def _alphazero(spec: Spec, game: Game | None) -> Player:
    simulations = spec.whole("simulations", 1, MAX_SIMULATIONS, DEFAULT_SIMULATIONS)
    _changed(spec, SearchConfig())  # finds mistakes before anything is loaded
    trained = load_run(spec.argument, game)
    return AlphaZeroPlayer(
        game=trained.game,
        search=_changed(spec, trained.search),
        simulations=simulations,
        network=trained.network,
        variables=trained.variables,
    )


def _q_learning(spec: Spec, game: Game | None) -> Player:
    epsilon = spec.real("epsilon", 0.0, 1.0, 0.0)
    trained = load_q_player(Path(spec.argument))
    _check_game(spec.argument, trained.game, game)
    return trained.player(epsilon)


KINDS = {
    "random": Kind("random", _random),
    "network": Kind("network:RUN", _network),
    "alphazero": Kind(
        "alphazero:RUN",
        _alphazero,
        ("simulations", "algorithm", "leaves_per_step", "kept_nodes", "proves"),
    ),
    "q_learning": Kind("q_learning:RUN", _q_learning, ("epsilon",)),
}


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
    _check_game(source, trained.game, game)
    return trained


def _check_game(source: str, found: Game, wanted: Game | None) -> None:
    if wanted is not None and found != wanted:
        raise ValueError(f"the player in {source} is for {found}, not for {wanted}")


def _changed(spec: Spec, search: SearchConfig) -> SearchConfig:
    """Returns the run's search with what the text says of it."""
    algorithm = spec.one_of("algorithm", ("gumbel", "alphazero"), search.algorithm)
    if algorithm == "gumbel":  # what is for PUCT alone goes with it
        search = dataclasses.replace(
            search, forced_playouts=0.0, first_play_reduction=None
        )
    return dataclasses.replace(
        search,
        algorithm=algorithm,
        proves=spec.flag("proves", search.proves),
        leaves_per_step=spec.whole(
            "leaves_per_step", 1, MAX_SIMULATIONS, search.leaves_per_step
        ),
        kept_nodes=spec.whole("kept_nodes", 0, MAX_SIMULATIONS, search.kept_nodes),
    )
