"""Exhaustive solution of small games."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.data.rows import pack_states
from azjax.games import Game, State
from azjax.players.lookahead import after_each_outcome

MAX_POSITIONS = 2_000_000
_CHUNK = 1024  # positions expanded by one call


class Solution(NamedTuple):
    """All N reachable positions of a game that do not wait for chance, ordered by the
    number of actions. NumPy arrays.

    states: leaves `[N, ...]`.
    num_moves: `[N]` int32; actions before the position.
    values: `[N]` float32; value under perfect play for the player to move: 1 win, 0
        draw, -1 loss, in games with chance the expected value, in [-1, 1]; for a
        terminated position its result.
    action_values: `[N, A]` float32; value of each action for the player who makes it;
        NaN where illegal or terminated.
    """

    states: State
    num_moves: np.ndarray
    values: np.ndarray
    action_values: np.ndarray


class TooManyPositionsError(ValueError):
    """A game has more positions than `solve` may visit."""


def solve(game: Game, *, max_positions: int = MAX_POSITIONS) -> Solution:
    """Solves a game by retrograde analysis of all reachable positions.

    Positions are equal if the same number of actions leads to the same state. With
    chance, the value of an action is the mean over the outcomes after it, and the first
    positions are those after each first outcome.

    Raises:
        TooManyPositionsError: the game has more than `max_positions` positions.
        ValueError: games take longer than `game.max_moves`.
    """
    # All reachable positions by number of actions: the states, leaves `[N, ...]`, the
    # results for player 0 of terminated games, `[N]`, the index of each successor in
    # the next layer, `[N, A]`, or `[N, A, K]` with chance, -1 where there is none, and
    # the probabilities of the successors, of the same shape.
    expand = jax.jit(functools.partial(_expand, game))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())
    if game.num_outcomes:
        outcomes = jax.jit(functools.partial(after_each_outcome, game))
        after, probability = jax.device_get(outcomes(game.init()))
        after = _take(after, probability > 0)
        states = _take(after, np.unique(as_bytes(after), return_index=True)[1])
    layers: list[tuple[State, np.ndarray, np.ndarray, np.ndarray]] = []
    num_positions = 0
    while len(states.terminated):
        num_positions += len(states.terminated)
        if len(layers) == game.max_moves and not states.terminated.all():
            raise longer_games_error(game)
        if num_positions > max_positions:
            raise TooManyPositionsError(
                f"{game!r} has more than {max_positions} positions, "
                "too many for exhaustive search"
            )
        after, probability, outcome = _in_chunks(expand, states)
        is_possible = probability > 0
        after = _take(after, is_possible)
        # Equal positions of a layer become one; `inverse` is where each move leads to.
        _, first, inverse = np.unique(
            as_bytes(after), return_index=True, return_inverse=True
        )
        child = np.full(is_possible.shape, -1)
        child[is_possible] = inverse
        layers.append((states, outcome, child, probability))
        states = _take(after, first)
    # From the last layer back; `values_after` is for player 0.
    results = []
    values_after = np.zeros(0, np.float32)
    for states, outcome, child, probability in reversed(layers):
        sign = np.where(states.current_player == 0, 1, -1).astype(np.float32)
        is_legal = child >= 0
        action_values = np.full(is_legal.shape, np.nan, np.float32)
        action_values[is_legal] = values_after[child[is_legal]]
        if game.num_outcomes:
            action_values = (probability * action_values).sum(axis=2, where=is_legal)
            is_legal = is_legal.any(axis=2)
            action_values[~is_legal] = np.nan
        action_values *= sign[:, None]
        best = np.max(action_values, axis=1, where=is_legal, initial=-1)
        values = np.where(np.any(is_legal, axis=1), best, sign * outcome)
        values_after = sign * values
        results.append((values, action_values))
    values, action_values = zip(*reversed(results), strict=True)
    sizes = [len(layer_values) for layer_values in values]
    return Solution(
        states=jax.tree.map(
            lambda *leaves: np.concatenate(leaves), *(layer[0] for layer in layers)
        ),
        num_moves=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        values=np.concatenate(values),
        action_values=np.concatenate(action_values),
    )


def longer_games_error(game: Game) -> ValueError:
    """Returns the error of a game that is not over after `game.max_moves`."""
    return ValueError(
        f"max_moves of {game!r} is {game.max_moves}, and some games take longer; "
        "azjax.games.check says how long random games are"
    )


def _expand(game: Game, states: State) -> tuple[State, jax.Array, jax.Array]:
    """Returns the successors, leaves `[N, A, ...]`, or `[N, A, K, ...]` with chance,
    their probabilities, which without chance say whether the action is legal, and `[N]`
    float32 results for player 0."""
    after = jax.vmap(jax.vmap(game.step, (None, 0)), (0, None))(
        states, jnp.arange(game.num_actions)
    )
    legal = jax.vmap(game.legal_action_mask)(states)
    outcome = jax.vmap(game.rewards)(states)[:, 0]
    is_legal = legal & ~states.terminated[:, None]
    if not game.num_outcomes:
        return after, is_legal, outcome
    outcomes = functools.partial(after_each_outcome, game)
    after, probability = jax.vmap(jax.vmap(outcomes))(after)
    return after, jnp.where(is_legal[:, :, None], probability, 0), outcome


def _in_chunks(expand, states):
    """Returns `expand(states)` as NumPy arrays, computed in chunks of `_CHUNK`
    positions."""
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
    """Returns `[N]` opaque values that are equal where the states are equal."""
    packed = pack_states(states, 1)
    return packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
