import dataclasses
import functools

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

    def once_for_settings(function):
        results = {}

        def cached(config, *rest, **settings):
            config = dataclasses.replace(
                config, run_dir="", initial_player=None, notes=""
            )
            key = (config, *settings.items())
            if key not in results:
                results[key] = function(config, *rest, **settings)
            return results[key]

        return cached

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "first_network", functools.cache(loop.first_network))
        for name in ("required_parts", "make_algorithm"):
            patch.setattr(loop, name, once_for_settings(getattr(loop, name)))
        yield
