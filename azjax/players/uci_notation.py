"""Moves of chess in the notation of UCI, the Universal Chess Interface.

`Chess.action_to_text` writes them: `e2e4`, `e1g1` for castling, `e7e8q`.
"""

import numpy as np

from azjax.games import Game, State
from azjax.games.core import compiled_mask


def read_move(game: Game, state: State, text: str) -> int:
    """Parses a move.

    A position that is drawn by the rules of `game` still has moves: a front end or a
    referee may continue such a game.

    Raises:
        ValueError: the text is not a legal move in this position.
    """
    for action in np.flatnonzero(compiled_mask(game, state)).tolist():
        if game.action_to_text(state, action) == text:
            return action
    raise ValueError(f"{text!r} is not a legal move")
