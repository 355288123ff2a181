"""A game for those who ask about one position after the other, on the host."""

import copy
import functools
from typing import TypeVar

import jax
import jax.numpy as jnp

from azjax.games.core import Game, State, compiled_mask

G = TypeVar("G", bound=Game)


def compiled(game: G) -> G:
    """Returns an equal game whose functions of a position are compiled, for those who
    ask about one position after the other."""
    fast = copy.copy(game)
    functions = {
        "step": _step,
        "legal_action_mask": compiled_mask,
        "board": _board,
        "rewards": _rewards,
    }
    for name, function in functions.items():
        vars(fast)[name] = functools.partial(function, game)
    after = fast.step(game.init(), jnp.int32(0))  # nobody waits at the first move
    jax.block_until_ready(
        (fast.legal_action_mask(after), fast.board(after), fast.rewards(after))
    )
    return fast


@jax.jit(static_argnames="game")
def _step(game: Game, state: State, action: jax.Array) -> State:
    return game.step(state, action)


@jax.jit(static_argnames="game")
def _board(game: Game, state: State) -> jax.Array:
    return game.board(state)


@jax.jit(static_argnames="game")
def _rewards(game: Game, state: State) -> jax.Array:
    return game.rewards(state)
