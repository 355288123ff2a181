"""The `player/` directory of a Q-learning run."""

import dataclasses
import os
from pathlib import Path

from azjax import games
from azjax.networks import QNetwork, QNetworkConfig, QParams, init_q_network
from azjax.players.q_learning import QPlayer
from azjax.players.saved_settings import check_kind, reading_settings, shapes_of
from azjax.players.schema import VERSION, migrate
from azjax.players.serialization import read_config, read_variables, write_files

KIND = "q_learning"


@dataclasses.dataclass(frozen=True)
class TrainedQ:
    """Learned action values with their game.

    network, params: the network and its parameters.
    config: configuration of the network.
    """

    game: games.Game
    network: QNetwork = dataclasses.field(repr=False)
    params: QParams = dataclasses.field(repr=False)
    config: QNetworkConfig

    def player(self, epsilon: float = 0.0) -> QPlayer:
        """Returns a player that follows the action values; `epsilon` is the probability
        of a random move."""
        return QPlayer(self.game, self.network, self.params, epsilon)


def save_q_player(directory: Path, trained: TrainedQ) -> None:
    """Writes a player; each file is replaced atomically.

    Args:
        directory: created if missing.
        trained: the player.
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
    """Loads a player that `save_q_player` wrote.

    Args:
        directory: a player directory or a run directory; a URL names one in an object
            store.
        most: maximum bytes of the weights as float32; None: `LARGEST_WEIGHT_BYTES` of
            `azjax.players.serialization`.

    Raises:
        ValueError: the player is missing, damaged, too large, of an unknown version or
            not from Q-learning.
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
