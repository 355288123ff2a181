import dataclasses
import functools

import jax
import jax.numpy as jnp
import pytest
from matplotlib.figure import Figure

from azjax.training import loop, plots


@pytest.fixture(scope="module")
def quick_plots():
    """Writes an empty picture where a run draws how it learns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "draw_learning", lambda rows, title: Figure((1, 1)))
        yield


@pytest.fixture(scope="module")
def shared_programs():
    """Lets all runs of a module that have the same settings compile once.

    The functions hold no arrays. Traced for each run again, they take longer than all
    that the runs compute.
    """
    estimate, build = loop.required_parts, functools.cache(loop.first_network)
    estimates = {}

    def required_parts(config, *rest):
        key = dataclasses.replace(config, run_dir="", initial_player=None)
        if key not in estimates:
            estimates[key] = estimate(config, *rest)
        return estimates[key]

    def first_network(*settings):
        network, variables = build(*settings)
        return network, jax.tree.map(jnp.copy, variables)  # a run donates its own

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "required_parts", required_parts)
        patch.setattr(loop, "first_network", first_network)
        for name in ("make_optimizer", "make_self_play", "make_update"):
            patch.setattr(loop, name, functools.cache(getattr(loop, name)))
        yield
