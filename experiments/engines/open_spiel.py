"""Connect Four and tic-tac-toe, replayed by OpenSpiel, whose rules are the same."""

import collections

import pyspiel
from engines.replay import replay

from azjax import games


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact."""
    return replay(pyspiel.load_game(game.name).new_initial_state, record)
