"""Proven results: bounds on what perfect play brings, with the number of moves to it.

Score-bounded tree search (Cazenave and Saffidine 2010), which extends Winands et al.
2008, "Monte-Carlo Tree Search Solver", to draws; here the bounds also count the moves.
A score is `WIN - moves` for a win in so many moves, its negative for a loss, 0 for a
draw, always for the player to move. For games of two players who move in turn, with a
result of win, draw or loss at the end and no reward before it.
"""

import jax
import jax.numpy as jnp

WIN = 2**14
ILLEGAL = -WIN - 1  # below every score, as the bounds of a move that cannot be made


def score_of_reward(reward: jax.Array) -> jax.Array:
    """Returns the int16 score of a finished position, for the player who did not make
    the last move, from the reward of the one who did."""
    return -(jnp.sign(reward) * WIN).astype(jnp.int16)


def move_bounds(
    lower: jax.Array, upper: jax.Array, child: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns int16 bounds `[..., A]` of the moves from some nodes.

    Args:
        lower: `[M]` int16; of all nodes.
        upper: `[M]` int16.
        child: `[..., A]` int32; where the moves lead, negative where not yet known.
        legal: `[..., A]` bool.
    """
    known = child >= 0
    entry = jnp.maximum(child, 0)
    move_lower = jnp.where(known, -_one_move_later(upper[entry]), -WIN)
    move_upper = jnp.where(known, -_one_move_later(lower[entry]), WIN)
    return (
        jnp.where(legal, move_lower, ILLEGAL).astype(jnp.int16),
        jnp.where(legal, move_upper, ILLEGAL).astype(jnp.int16),
    )


def _one_move_later(score: jax.Array) -> jax.Array:
    return score - jnp.sign(score)


def is_proven(lower: jax.Array, upper: jax.Array) -> jax.Array:
    """Returns whether the bounds leave one result: a win, a draw or a loss."""
    return (lower > 0) | (upper < 0) | (lower == upper)


def exact_value(lower: jax.Array, upper: jax.Array) -> jax.Array:
    """Returns the result, 1, 0 or -1 in float32, that proven bounds leave."""
    return (lower > 0).astype(jnp.float32) - (upper < 0).astype(jnp.float32)


def best_moves(move_lower: jax.Array, move_upper: jax.Array) -> jax.Array:
    """Returns `[..., A]` bool; the moves among which a player should choose.

    The shortest of the proven wins, if there is one; else all moves that are not
    proven to lose; else the longest of the losses.
    """
    wins = move_lower > 0
    shortest = wins & (move_lower == move_lower.max(axis=-1, keepdims=True))
    holds = move_upper >= 0
    longest = move_upper == move_upper.max(axis=-1, keepdims=True)
    alive = jnp.where(holds.any(axis=-1, keepdims=True), holds, longest)
    return jnp.where(wins.any(axis=-1, keepdims=True), shortest, alive)
