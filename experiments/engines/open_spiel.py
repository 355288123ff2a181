"""Replays Connect Four and tic-tac-toe in OpenSpiel, which has the same rules."""

import collections

import pyspiel
from engines.replay import replay

from azjax import games


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact."""
    return replay(pyspiel.load_game(game.name).new_initial_state, record)
