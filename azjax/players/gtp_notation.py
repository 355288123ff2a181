"""Moves and colours as GTP, the Go Text Protocol, writes them.

In every game `b` is player 0, who moves first, and `w` player 1. A move is written as
the game writes it; what looks like a point of a board, `d4`, in capitals.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import Game, State
from azjax.games.core import S, compiled_mask

COLOURS = ("b", "w")
PASS = "pass"
RESIGN = "resign"


def to_vertex(game: Game, state: State, action: int) -> str:
    """Returns an action of the player to move as GTP writes it."""
    text = game.action_to_text(state, action)
    return text.upper() if re.fullmatch("[a-z][0-9]+", text) else text


def read_vertex(game: Game, state: State, text: str) -> int:
    """Reads what `to_vertex` writes, and all else that the game itself reads.

    Raises:
        ValueError: it is no legal move in this position.
    """
    wanted = text.lower()
    for action in legal_actions(game, state):
        if game.action_to_text(state, action).lower() == wanted:
            return action
    return game.text_to_action(state, text)


def legal_actions(game: Game, state: State) -> list[int]:
    """Returns the actions that are legal in one position; none if it is finished."""
    if state.terminated:
        return []
    return np.flatnonzero(compiled_mask(game, state)).tolist()


def first_state(game: Game[S]) -> S:
    """Returns the first position, in NumPy."""
    return jax.device_get(game.init())


def next_state(game: Game[S], state: S, action: int) -> S:
    """Returns the position after an action, in NumPy, compiled once for each game."""
    return jax.device_get(_step(game, state, jnp.int32(action)))


@functools.partial(jax.jit, static_argnames="game")
def _step(game: Game[S], state: S, action: jax.Array) -> S:
    return game.step(state, action)
