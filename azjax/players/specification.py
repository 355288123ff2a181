"""Players named by text: `random`, `network:RUN`, `alphazero:RUN?simulations=200`."""

from pathlib import Path
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

KINDS = "random, network:RUN, alphazero:RUN, alphazero:RUN?simulations=N"
DEFAULT_SIMULATIONS = 64
MAX_SIMULATIONS = 100_000


def load(spec: str, game: Game | None = None) -> Player:
    """Builds the player that a text names.

    `random` needs a game; `network:RUN` follows a trained network's policy, and
    `alphazero:RUN?simulations=N` searches with it. RUN is a run's directory, a player's
    directory, or `pretrained`, which needs a game.

    Raises:
        ValueError: the text names no player, or the player is for another game.
    """
    kind, _, rest = spec.partition(":")
    source, _, query = rest.partition("?")
    if kind not in ("random", "network", "alphazero") or (
        (kind == "random") == bool(source)
    ):
        raise ValueError(f"unknown player {spec!r}; players are {KINDS}")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    allowed = ("simulations",) if kind == "alphazero" else ()
    for key in settings:
        if key not in allowed:
            raise ValueError(
                f"player {spec!r} has no setting {key!r}; players are {KINDS}"
            )
    if kind == "random":
        if game is None:
            raise ValueError("the player 'random' needs to know the game")
        return RandomPlayer(game)
    simulations = _simulations(spec, settings)
    trained = load_run(source, game)
    if kind == "network":
        return NetworkPlayer(trained.game, trained.network, trained.variables)
    return AlphaZeroPlayer(
        game=trained.game,
        search=trained.search,
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


def _simulations(spec: str, settings: dict[str, str]) -> int:
    text = settings.get("simulations", str(DEFAULT_SIMULATIONS))
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SIMULATIONS:
        raise ValueError(
            f"simulations must be a whole number from 1 to {MAX_SIMULATIONS} in player "
            f"{spec!r}: {text!r}"
        )
    return int(text)
