"""The `player/` directory of a run of Q-learning."""

import dataclasses
import os
from pathlib import Path

from azjax import games
from azjax.networks import QNetwork, QNetworkConfig, QParams, init_q_network
from azjax.players.q_learning import QPlayer
from azjax.players.schema import VERSION, migrate
from azjax.players.serialization import (
    check_kind,
    read_config,
    read_variables,
    reading_settings,
    shapes_of,
    write_files,
)

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
        "format": VERSION,
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


def load_q_player(
    directory: str | os.PathLike[str], *, most: int | None = None
) -> TrainedQ:
    """Reads a player that `save_q_player` wrote.

    Args:
        directory: a player's directory, or a run's, which has one in it; a URL names
            one in an object store.
        most: bytes that the weights may take as float32; None if any number.

    Raises:
        ValueError: there is no player, it is damaged, of another version or too large,
            or it was not learnt by Q-learning.
    """
    directory, config = read_config(directory)
    check_kind(directory, config, KIND)
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
