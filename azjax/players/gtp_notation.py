"""Moves and colors in the notation of GTP, the Go Text Protocol.

In every game `b` is player 0, who moves first, and `w` is player 1. Moves are in the
game's notation; points of a board such as `d4` are written in capitals.
"""

import re

from azjax.games import Game, State
from azjax.games.host import legal_actions

COLORS = ("b", "w")
PASS = "pass"
RESIGN = "resign"


def to_vertex(game: Game, state: State, action: int) -> str:
    """Returns an action of the player to move in GTP notation."""
    text = game.action_to_text(state, action)
    return text.upper() if re.fullmatch("[a-z][0-9]+", text) else text


def read_vertex(game: Game, state: State, text: str) -> int:
    """Parses a move in GTP notation or in the game's own notation.

    Raises:
        ValueError: the text is not a legal move in this position.
    """
    wanted = text.lower()
    for action in legal_actions(game, state):
        if game.action_to_text(state, action).lower() == wanted:
            return action
    return game.text_to_action(state, text)
