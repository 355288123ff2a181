"""Replays Hex in OpenSpiel.

The rules are the same: player 0 connects top and bottom. A swap is action
`size * size`; it leaves a stone of player 1 on the cell with row and column exchanged.
"""

import collections

import pyspiel
from engines.replay import replay

from azjax import games


def compare(game: games.Game, record: dict) -> collections.Counter:
    """Replays a record in OpenSpiel and counts the disagreements, by fact."""
    size, swap = game.options["size"], str(game.options["swap"]).lower()
    rules = pyspiel.load_game(f"hex(num_cols={size},num_rows={size},swap={swap})")
    return replay(rules.new_initial_state, record)
