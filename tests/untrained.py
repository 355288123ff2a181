"""Untrained networks, each made once in a process, and by one program.

Without `jax.jit`, each array of a network is made by several programs.
"""

import functools

import jax

from azjax.players import first_network


@functools.cache
def untrained(game, config, parts=None, seed=0):
    """Returns the network and its variables."""
    return _traced(lambda make: jax.jit(make)(), seed, game, config, parts)


@functools.cache
def untrained_shapes(game, config, parts=None):
    """Returns the network and the shapes of its variables."""
    return _traced(jax.eval_shape, 0, game, config, parts)


def _traced(run, *args):
    networks = []

    def make():
        network, variables = first_network(*args)
        networks.append(network)
        return variables

    variables = run(make)
    return networks[0], variables
