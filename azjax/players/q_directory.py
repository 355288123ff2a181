"""The `player/` directory of a run of Q-learning."""

import dataclasses
import os
from pathlib import Path

import jax

from azjax import games
from azjax.networks import QNetwork, QNetworkConfig, QParams, init_q_network
from azjax.players.directory import (
    FORMAT,
    check_format,
    check_kind,
    fill,
    read_files,
    reading_settings,
    write_files,
)
from azjax.players.q_learning import QPlayer

KIND = "q_learning"


@dataclasses.dataclass(frozen=True)
class TrainedQ:
    """Learnt action values with their game.

    network, params: what was learnt.
    config: how the network is made.
    """

    game: games.Game
    network: QNetwork
    params: QParams
    config: QNetworkConfig

    def player(self, epsilon: float = 0.0) -> QPlayer:
        """Returns the player that follows them, but for a share of random moves."""
        return QPlayer(self.game, self.network, self.params, epsilon)


def save_q_player(directory: Path, trained: TrainedQ) -> None:
    """Writes a player, file by file, so that a reader never sees half of one.

    Args:
        directory: made if it is not there.
        trained: what to write.
    """
    config = {
        "format": FORMAT,
        "kind": KIND,
        "game": trained.game.name,
        "options": trained.game.options,
        "network": {
            "form": trained.config.form,
            "hidden": trained.config.layers,
            "separate": trained.config.separate,
        },
    }
    write_files(directory, config, trained.params, dtype="float32")


def load_q_player(directory: str | os.PathLike[str]) -> TrainedQ:
    """Reads a player that `save_q_player` wrote.

    Args:
        directory: a player's directory, or a run's, which has one in it.

    Raises:
        ValueError: there is no player, it is damaged or of another version, or it was
            not learnt by Q-learning.
    """
    directory, config, weights = read_files(directory)
    check_kind(directory, config, KIND)
    with reading_settings(directory):
        check_format(config)
        game = games.make(config["game"], **config["options"])
        network_config = QNetworkConfig(
            form=config["network"]["form"],
            hidden=tuple(config["network"]["hidden"]),
            separate=config["network"]["separate"],
        )
    network, params = init_q_network(
        jax.random.key(0), game.observation_shape, game.num_actions, network_config
    )
    return TrainedQ(game, network, fill(params, weights, directory), network_config)
