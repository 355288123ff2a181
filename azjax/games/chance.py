"""Outcomes of chance, such as rolls of dice, in batches of games.

Shapes: B games, A actions, K outcomes.
"""

import itertools

import jax
import jax.numpy as jnp

from azjax.games.core import Game, S, select


def after_chance(
    game: Game[S], rng_key: jax.Array, states: S
) -> tuple[S, jax.Array | None]:
    """Draws an outcome in each of B positions that wait for chance.

    Args:
        game: the game.
        rng_key: one key, consumed.
        states: leaves `[B, ...]`.

    Returns:
        The positions, leaves `[B, ...]`, none of which waits for chance, and `[B]`
        int32 outcomes, -1 where a position did not wait; None in games without chance.
    """
    if not game.num_outcomes:
        return states, None
    outcome = random_outcome(rng_key, outcome_probabilities(game, states))
    return after_outcome(game, states, outcome), outcome


def outcome_probabilities(game: Game[S], states: S) -> jax.Array:
    """Returns `[B, K]` float32, zeros where a position does not wait for chance."""
    return jnp.asarray(jax.vmap(game.chance)(states))


def random_outcome(rng_key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Returns `[B]` int32, an outcome for each row of `probabilities`, `[B, K]`; -1
    where all are 0. The key is consumed.

    It draws one number per row; `jax.random.categorical` draws K. The probabilities
    differ by at most `2**-23`.
    """
    # Unrolled, because XLA fuses these sums but not a cumulative sum.
    sums = list(itertools.accumulate(jnp.moveaxis(probabilities, -1, 0)))
    drawn = jax.random.uniform(rng_key, sums[-1].shape) * sums[-1]
    outcome = sum((each <= drawn for each in sums), jnp.int32(0))
    return jnp.where(sums[-1] > 0, outcome, -1)


def after_outcome(game: Game[S], states: S, outcome: jax.Array) -> S:
    """Returns B positions after `[B]` int32 outcomes; the same where one is -1."""
    after = jax.vmap(game.chance_step)(states, jnp.maximum(outcome, 0))
    return jax.vmap(select)(outcome >= 0, after, states)
