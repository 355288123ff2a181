"""Training runs in one process that share traced and compiled functions."""

import contextlib
import dataclasses
import functools

import pytest

from azjax.training import EvaluationConfig, algorithm, loop


@contextlib.contextmanager
def shared_programs():
    """Makes runs with equal settings trace and compile the functions once.

    The functions hold no arrays. Tracing them for each run takes longer than executing
    them. They do not depend on the length of a run, and self-play does not depend on
    the optimizer and the losses.
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
