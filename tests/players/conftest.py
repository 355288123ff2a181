"""A small trained player, as training saves it, and its searches."""

import jax
import numpy as np
import pytest
from players.engines import command, position

from azjax import games
from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import (
    AlphaZeroPlayer,
    GtpPlayer,
    MCTSPlayer,
    TrainedPlayer,
    UciPlayer,
    first_network,
)
from azjax.search import AlphaZeroConfig, GumbelConfig

CONFIG = NetworkConfig(
    trunk=DenseTrunkConfig(num_blocks=1, width=5, stem_channels=8, window=2)
)


@pytest.fixture(scope="session")
def trained() -> TrainedPlayer:
    """A tic-tac-toe player whose parameters differ from the initial ones."""
    game = games.make("tic_tac_toe")
    network, variables = jax.device_get(
        jax.jit(lambda: first_network(3, game, CONFIG))()
    )
    return TrainedPlayer(
        game=game,
        network=network,
        variables=jax.tree.map(
            lambda leaf: np.asarray(leaf) + np.float32(0.1), variables
        ),
        config=CONFIG,
        search=AlphaZeroConfig(c_init=2.5),
        seed=3,
    )


@pytest.fixture(scope="session")
def after(trained):
    """Returns the positions after lists of moves, as one batch."""

    def batch(*games_):
        positions = (position(trained.game, moves) for moves in games_)
        return jax.tree.map(lambda *leaves: np.stack(leaves), *positions)

    return batch


@pytest.fixture(scope="session")
def states(after):
    """The positions of tic-tac-toe after a3, after a3 b2 and after a3 b2 c1."""
    return after([0], [0, 4], [0, 4, 8])


@pytest.fixture(scope="session")
def searcher(trained):
    """A player with tree reuse; tests search with it in batches of four games."""
    return AlphaZeroPlayer(
        trained.game,
        GumbelConfig(tree_reuse_nodes=40, use_solver=True),
        100,
        trained.network,
        trained.variables,
    )


@pytest.fixture(scope="session")
def playouts(trained):
    """A player without a network, whose trees are smaller than `MAX_BRANCHES`."""
    return MCTSPlayer(trained.game, 30, tree_reuse_nodes=10)


@pytest.fixture(scope="session")
def analyze():
    """`analyze` of a player, compiled once for equal players and shapes."""

    @jax.jit(static_argnums=0)
    def analyze(player_type, player, rng_key, states, carry):
        return player_type.analyze(player, rng_key, states, carry)

    def numpy(player, states, carry, seed=0):
        rng_key = jax.random.key(seed)
        return jax.device_get(analyze(type(player), player, rng_key, states, carry))

    return numpy


@pytest.fixture
def log(tmp_path):
    """The file of what the engines of `make_player` received."""
    return tmp_path / "log"


@pytest.fixture
def make_player(log):
    """Creates players of fake engines, which are closed after the test."""
    made = []

    def make(protocol, behavior="good", *args, **settings):
        player = GtpPlayer if protocol == "gtp" else UciPlayer
        made.append(player(command(protocol, behavior, log), *args, **settings))
        return made[-1]

    yield make
    for player in made:
        player.close()
