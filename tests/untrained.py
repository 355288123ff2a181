"""Untrained networks, each made once in a process, and by one program.

Without `jax.jit`, each array of a network is made by several programs.
"""

import functools

import jax

from azjax.networks import DenseTrunkConfig, NetworkConfig
from azjax.players import TrainedPlayer, first_network
from azjax.search import GumbelConfig

TINY = NetworkConfig(
    trunk=DenseTrunkConfig(width=4, num_blocks=1, stem_channels=4, window=1)
)


@functools.cache
def untrained(game, config, modules=None, seed=0):
    """Returns the network of a game and its variables."""
    return in_one_program(first_network, seed, game, config, modules)


@functools.cache
def untrained_shapes(game, config, modules=None):
    """Returns the network of a game and the shapes of its variables."""
    return without_arrays(first_network, 0, game, config, modules)


def untrained_player(game, config=TINY, seed=0):
    """Returns a player as training saves it."""
    network, variables = untrained(game, config, seed=seed)
    return TrainedPlayer(game, network, variables, config, GumbelConfig(), seed)


def in_one_program(init, *args, **settings):
    """Returns the result of `init_network`, or of a function like it."""
    return _traced(lambda make: jax.jit(make)(), init, *args, **settings)


def without_arrays(init, *args, **settings):
    """Returns the result of `init_network`, with shapes in place of the arrays."""
    return _traced(jax.eval_shape, init, *args, **settings)


def _traced(run, init, *args, **settings):
    networks = []

    def make():
        network, variables = init(*args, **settings)
        networks.append(network)
        return variables

    variables = run(make)
    return networks[0], variables
