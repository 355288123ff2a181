"""A small trained player, as training saves it."""

import jax
import numpy as np
import pytest

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import TrainedPlayer, first_network
from azjax.search import AlphaZeroConfig

CONFIG = NetworkConfig(
    trunk=DenseTrunkConfig(num_blocks=1, width=5, stem_channels=8, window=2)
)


@pytest.fixture(scope="session")
def trained() -> TrainedPlayer:
    """A tic-tac-toe player whose parameters differ from the initial ones."""
    game = games.make("tic_tac_toe")
    network, variables = first_network(3, game, CONFIG)
    return TrainedPlayer(
        game=game,
        network=network,
        variables=jax.tree.map(lambda leaf: leaf + 0.1, variables),
        config=CONFIG,
        search=AlphaZeroConfig(c_init=2.5),
        seed=3,
    )


@pytest.fixture(scope="session")
def states(trained):
    """The positions of tic-tac-toe after a3, after a3 b2 and after a3 b2 c1."""
    step = jax.jit(trained.game.step)
    state, found = trained.game.init(), []
    for action in (0, 4, 8):
        state = step(state, np.int32(action))
        found.append(state)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found)
