"""Training runs in one process that share traced and compiled functions."""

import contextlib
import dataclasses
import functools

import pytest
from matplotlib.figure import Figure
from untrained import in_one_program

from azjax.training import (
    CheckpointConfig,
    DataConfig,
    EvaluationConfig,
    ReportConfig,
    game_reader,
    loop,
    territory,
)
from azjax.training.analysis import plots


@contextlib.contextmanager
def shared_programs():
    """Makes runs with equal settings trace and compile the functions once, and write
    empty plots.

    The functions hold no arrays. Tracing them for each run takes longer than executing
    them. They do not depend on the length of a run.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, name, function in _functions():
            patch.setattr(module, name, function)
        patch.setattr(plots, "draw_learning", lambda rows, title: Figure((1, 1)))
        yield


@functools.cache
def _functions():
    """Returns modules, names, and the functions that replace those of the modules."""
    first_network = functools.cache(
        functools.partial(in_one_program, loop.first_network)
    )
    return [
        (loop, "first_network", first_network),
        (territory, "first_network", first_network),
        (game_reader, "make_check", functools.cache(game_reader.make_check)),
        *(
            (loop, name, _once_for_settings(getattr(loop, name)))
            for name in ("training_network", "required_memory")
        ),
        (loop, "make_algorithm", _make_algorithm()),
    ]


def _once_for_settings(function):
    """Caches a function `(config, game, ...)`, of which only what runs differ in is
    compared: the settings, the user's modules, and the other functions of the user."""
    results = {}

    def cached(config, *rest, **settings):
        config = dataclasses.replace(
            config,
            run_dir="",
            initial_player=None,
            learn_from=("elsewhere",) if config.learn_from else (),
            repeat_schedule=None,
            notes="",
            minutes=None,
            iterations=1,
            evaluation=EvaluationConfig(
                num_simulations=config.evaluation.num_simulations
            ),
            checkpoint=CheckpointConfig(),
            data=DataConfig(),
            report=ReportConfig(),
        )
        given = (item for item in settings.items() if item[1] is not None)
        key = (config, *given)
        if function.__name__ == "training_network":
            key = (config, rest[1])
        if key not in results:
            results[key] = function(config, *rest, **settings)
        return results[key]

    return cached


def _make_algorithm(make=loop.make_algorithm):
    """Caches `make_algorithm`. Runs that learn from stored games, or with the user's
    optimizer, have the other jitted functions of those that do not."""
    cached = _once_for_settings(make)

    def make_algorithm(config, *rest, **settings):
        found = cached(config, *rest, **settings)
        plain = dataclasses.replace(config, learn_from=(), stored_fraction=1.0)
        shared = cached(plain, *rest, **settings | {"optimizer": None})
        return shared._replace(init=found.init, update=found.update)

    return make_algorithm
