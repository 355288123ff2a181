"""Small games solved whole: every position that can be reached, and its value."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import Game, State

MAX_POSITIONS = 2_000_000
_CHUNK = 1024  # positions expanded by one call, so that one compilation serves


class Solution(NamedTuple):
    """Every position of a game, those after fewer moves first.

    N is the number of positions. All arrays are NumPy's.

    states: leaves `[N, ...]`.
    num_moves: `[N]` int32; moves made before the position.
    values: `[N]` float32; what the position is worth under perfect play to the player
        to move, 1 win, 0 draw, -1 loss; for a finished game its result.
    action_values: `[N, A]` float32; what each action is worth to the player who makes
        it; NaN where it is illegal or the game is over.
    """

    states: State
    num_moves: np.ndarray
    values: np.ndarray
    action_values: np.ndarray


def solve(game: Game) -> Solution:
    """Finds the value of every position that can be reached, by going back from the
    ends of the game.

    Positions count as one if the same number of moves leads to the same state.

    Raises:
        ValueError: the game has more than `MAX_POSITIONS` positions.
    """
    layers = _reachable(game)
    results = []
    values_after = np.zeros(0, np.float32)
    for layer in reversed(layers):
        # Values for player 0 on the way, so that who moves next does not matter.
        is_first = layer.states.current_player == 0
        sign = np.where(is_first, 1, -1).astype(np.float32)
        is_legal = layer.child >= 0
        action_values = np.full(is_legal.shape, np.nan, np.float32)
        action_values[is_legal] = values_after[layer.child[is_legal]]
        action_values *= sign[:, None]
        best = np.max(action_values, axis=1, where=is_legal, initial=-1)
        values = np.where(is_legal.any(axis=1), best, sign * layer.outcome)
        values_after = sign * values
        results.append((values, action_values))
    values, action_values = zip(*reversed(results), strict=True)
    sizes = [len(layer_values) for layer_values in values]
    return Solution(
        states=jax.tree.map(
            lambda *leaves: np.concatenate(leaves), *(layer.states for layer in layers)
        ),
        num_moves=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        values=np.concatenate(values),
        action_values=np.concatenate(action_values),
    )


class _Layer(NamedTuple):
    """The N positions after the same number of moves.

    states: leaves `[N, ...]`.
    outcome: `[N]` float32; result of the finished games for player 0.
    child: `[N, A]` int; index of the position after each action in the next layer, -1
        where the action is illegal.
    """

    states: State
    outcome: np.ndarray
    child: np.ndarray


def _reachable(game: Game) -> list[_Layer]:
    """Returns all positions, by the number of moves that lead to them."""
    expand = jax.jit(lambda states: _expand(game, states))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())
    layers = []
    num_positions = 0
    while len(states.terminated):
        num_positions += len(states.terminated)
        if num_positions > MAX_POSITIONS:
            raise ValueError(
                f"{game.name} has more than {MAX_POSITIONS} positions, "
                "too many for exhaustive search"
            )
        after, is_legal, outcome = _in_chunks(expand, states)
        after = _take(after, is_legal)
        _, first, inverse = np.unique(
            as_bytes(after), return_index=True, return_inverse=True
        )
        child = np.full(is_legal.shape, -1)
        child[is_legal] = inverse
        layers.append(_Layer(states, outcome, child))
        states = _take(after, first)
    return layers


def _expand(game: Game, states: State) -> tuple[State, jax.Array, jax.Array]:
    """Returns the states after each action, leaves `[N, A, ...]`, `[N, A]` bool:
    whether it can be played, and `[N]` float32: the result for player 0."""
    after = jax.vmap(jax.vmap(game.step, (None, 0)), (0, None))(
        states, jnp.arange(game.num_actions)
    )
    legal = jax.vmap(game.legal_action_mask)(states)
    outcome = jax.vmap(game.rewards)(states)[:, 0]
    return after, legal & ~states.terminated[:, None], outcome


def _in_chunks(expand, states):
    """Returns `expand(states)` as NumPy arrays, computed `_CHUNK` positions a call."""
    size = len(states.terminated)
    parts = []
    for start in range(0, size, _CHUNK):
        rows = np.arange(start, start + _CHUNK).clip(max=size - 1)
        chunk = jax.tree.map(np.asarray, expand(_take(states, rows)))
        parts.append(_take(chunk, slice(size - start)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _take(tree, rows):
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def as_bytes(states: State) -> np.ndarray:
    """Returns `[N]` of an opaque dtype: equal where the states are."""
    size = len(states.terminated)
    rows = []
    for leaf in jax.tree.leaves(states):
        num_bytes = math.prod(leaf.shape[1:]) * leaf.itemsize
        rows.append(leaf.reshape(-1).view(np.uint8).reshape(size, num_bytes))
    packed = np.concatenate(rows, axis=1)
    return packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
