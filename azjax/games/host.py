"""Compiled functions of a game for one position at a time, on the host.

Each function is compiled once for each game; equal games share it.
"""

import copy
import functools
from typing import Any, TypeVar

import jax
import numpy as np

from azjax.games.core import Game, S, State, compiled_call, compiled_mask, original

G = TypeVar("G", bound=Game)


def first_state(game: Game[S]) -> S:
    """Returns the initial position as NumPy arrays."""
    return jax.device_get(game.init())


def first_states(game: Game[S], number: int) -> S:
    """Returns the initial positions of N games, leaves `[N, ...]`, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.stack([leaf] * number), first_state(game))


def next_state(game: Game[S], state: S, action: int) -> S:
    """Returns the position after an action as NumPy arrays."""
    # A compiled function takes a NumPy scalar faster than `jnp.int32` makes an array.
    number: Any = np.int32(action)
    return jax.device_get(compiled_call("step", game, state, number))


def legal_actions(game: Game, state: State) -> list[int]:
    """Returns the legal actions of a position; none if it is terminated."""
    if state.terminated:
        return []
    return np.flatnonzero(compiled_mask(game, state)).tolist()


def rewards(game: Game, state: State) -> tuple[float, float]:
    """Returns the rewards of players 0 and 1 in a position."""
    first, second = np.asarray(compiled_call("rewards", game, state)).tolist()
    return first, second


def board(game: Game, state: State) -> np.ndarray:
    """Returns `[H, W]` int8, the board of a position."""
    return np.asarray(compiled_call("board", game, state))


def score(game: Game, state: State) -> np.ndarray | None:
    """Returns `[2]` float32, the points of players 0 and 1; None without points."""
    return jax.device_get(compiled_call("score", game, state))


def owners(game: Game, state: State) -> np.ndarray:
    """Returns `[H, W]` int8, the owner of each point in a game with owners."""
    return np.asarray(compiled_call("owners", game, state))


def compiled(game: G) -> G:
    """Returns an equal game with compiled `step`, `legal_action_mask`, `board` and
    `rewards`.

    The functions are compiled before this returns, so that the first move of an
    interface is as fast as later ones.
    """
    fast = copy.copy(game)
    vars(fast)["_original"] = original(game)
    for name in ("step", "legal_action_mask", "board", "rewards"):
        vars(fast)[name] = functools.partial(compiled_call, name, game)
    after = next_state(game, game.init(), 0)
    jax.block_until_ready(
        (fast.legal_action_mask(after), fast.board(after), fast.rewards(after))
    )
    return fast
