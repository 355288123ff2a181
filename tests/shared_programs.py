"""Training runs of one process that trace and compile the same functions once."""

import contextlib
import dataclasses
import functools

import pytest

from azjax.training import EvaluationConfig, algorithm, loop


@contextlib.contextmanager
def shared_programs():
    """A context in which all runs that have the same settings compile once.

    The functions hold no arrays. Traced for each run again, they take longer than all
    that the runs compute. How long a run is does not change them, and self-play is the
    same with any optimizer and loss.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "first_network", functools.cache(loop.first_network))
        for name in ("required_memory", "make_algorithm"):
            patch.setattr(loop, name, _once_for_settings(getattr(loop, name)))
        make_self_play = functools.cache(algorithm.make_self_play)
        patch.setattr(algorithm, "make_self_play", make_self_play)
        yield


def _once_for_settings(function):
    results = {}

    def cached(config, *rest, **settings):
        simulations = config.evaluation.num_simulations
        config = dataclasses.replace(
            config,
            run_dir="",
            initial_player=None,
            plan=None,
            notes="",
            minutes=None,
            iterations=1,
            evaluation=EvaluationConfig(num_simulations=simulations),
        )
        key = (config, *settings.items())
        if key not in results:
            results[key] = function(config, *rest, **settings)
        return results[key]

    return cached
