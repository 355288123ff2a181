"""Bounds on the score of a position under perfect play.

Score-bounded tree search (Cazenave and Saffidine 2010) extends the MCTS solver (Winands
et al. 2008, "Monte-Carlo Tree Search Solver") to draws. Here the bounds also count the
moves. A score is `WIN - moves` for a win in that many moves, the negative of it for a
loss, and 0 for a draw. The bounds of a node are those of the score for the player who
made the move to it, so that a parent compares the bounds of its children as they are.
They are valid for two-player games with a win, draw or loss at the end, and no reward
before the end.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

WIN = 2**14
ILLEGAL = -WIN - 1  # bound of an illegal move, below every score


class Bounds(NamedTuple):
    """Proven bounds of the scores of M nodes, or of moves.

    lower, upper: `[M]` int16.
    """

    lower: jax.Array
    upper: jax.Array


def unknown_bounds(size: int) -> Bounds:
    """Returns bounds that exclude no score, for `size` nodes."""
    upper = jnp.full(size, WIN, jnp.int16)
    return Bounds(-upper, upper)


def score_of_reward(reward: jax.Array) -> jax.Array:
    """Returns the int16 score of a finished position, from the reward of the last move;
    both are for the player who moved."""
    return (jnp.sign(reward) * WIN).astype(jnp.int16)


def turned(bounds: Bounds, discount: jax.Array) -> Bounds:
    """Returns the bounds of nodes for the player to move there, from those for the
    player who moved there, or the reverse.

    Args:
        bounds: of the nodes.
        discount: of the moves to the nodes; positive if both are the same player.
    """
    is_same = discount > 0
    return Bounds(
        jnp.where(is_same, bounds.lower, -bounds.upper),
        jnp.where(is_same, bounds.upper, -bounds.lower),
    )


def move_bounds(bounds: Bounds, child: jax.Array, legal: jax.Array) -> Bounds:
    """Returns int16 bounds `[..., A]` of the moves of some nodes, for their mover.

    Args:
        bounds: of all M nodes, for the player who moved there.
        child: `[..., A]` int32; the nodes that the moves lead to, negative where
            unknown.
        legal: `[..., A]` bool.
    """
    # A child's score is the opponent's: its bounds change signs and places.
    known = child >= 0
    entry = jnp.maximum(child, 0)
    lower = jnp.where(known, _one_move_later(bounds.lower[entry]), -WIN)
    upper = jnp.where(known, _one_move_later(bounds.upper[entry]), WIN)
    return Bounds(
        jnp.where(legal, lower, ILLEGAL).astype(jnp.int16),
        jnp.where(legal, upper, ILLEGAL).astype(jnp.int16),
    )


def _one_move_later(score: jax.Array) -> jax.Array:
    return score - jnp.sign(score)


def is_proven(bounds: Bounds) -> jax.Array:
    """Returns whether the bounds leave one result: a win, a draw or a loss."""
    lower, upper = bounds
    return (lower > 0) | (upper < 0) | (lower == upper)


def proven_value(bounds: Bounds) -> jax.Array:
    """Returns the proven result, 1, 0 or -1 in float32."""
    lower, upper = bounds
    return (lower > 0).astype(jnp.float32) - (upper < 0).astype(jnp.float32)


def best_moves(bounds: Bounds) -> jax.Array:
    """Returns `[..., A]` bool; the moves to choose from, given the bounds of the moves.

    The shortest of the proven wins, if there is one; otherwise all moves that are not
    proven losses; otherwise the longest of the losses.
    """
    lower, upper = bounds
    wins = lower > 0
    shortest = wins & (lower == lower.max(axis=-1, keepdims=True))
    holds = upper >= 0
    longest = upper == upper.max(axis=-1, keepdims=True)
    alive = jnp.where(holds.any(axis=-1, keepdims=True), holds, longest)
    return jnp.where(wins.any(axis=-1, keepdims=True), shortest, alive)
