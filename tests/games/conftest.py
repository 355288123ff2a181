"""Comparisons with other engines, shared with `experiments/verify_games.py`, and games
of a test's own."""

import functools
import importlib
import pathlib

import jax
import pytest

from azjax.games import registry

EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="session")
def engine():
    """Returns a function that imports a module of `experiments/engines` by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXPERIMENTS)
        yield lambda name: importlib.import_module(f"engines.{name}")


@pytest.fixture(scope="session")
def random_games(engine):
    """Returns a function `(game, number) -> record` of random games on the host."""

    @functools.cache
    def play(game, number):
        keys = jax.random.split(jax.random.key(2), number)
        return jax.device_get(engine("record").make_recorder(game)(keys))

    return play


@pytest.fixture
def own_games(monkeypatch):
    """Games that the test registers are unknown after it."""
    monkeypatch.setattr(registry, "_GAMES", dict(registry._GAMES))
