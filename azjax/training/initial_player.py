"""The player that an earlier run left, with which another begins."""

import dataclasses
from pathlib import Path

from azjax.games import Game
from azjax.networks import Parts, Variables
from azjax.players import load_player
from azjax.players.directory import PRETRAINED, pretrained_directory
from azjax.training.config import TrainConfig


def initial_variables(
    config: TrainConfig, game: Game, parts: Parts | None
) -> Variables:
    """Returns the weights of `config.initial_player`.

    Raises:
        ValueError: there is no such player, it is for another game, or its network is
            another.
    """
    source = config.initial_player or ""
    directory = (
        pretrained_directory(game.name) if source == PRETRAINED else Path(source)
    )
    player = load_player(directory, parts)
    if player.game != game:
        raise ValueError(f"the player in {source} is for {player.game}, not for {game}")
    found, wanted = (
        dataclasses.asdict(network) for network in (player.config, config.network)
    )
    differences = [
        f"network.{name} is {found[name]} there and {wanted[name]} here"
        for name in wanted
        if found[name] != wanted[name]
    ]
    if differences:
        raise ValueError(
            f"the player in {source} has another network ({'; '.join(differences)}): "
            "give its settings"
        )
    return player.variables
