"""Value targets."""

import math

import jax
import jax.numpy as jnp

NEGLIGIBLE = 1e-3  # weight of what is not known yet in an accepted target


def one_hot_result(reward: jax.Array) -> jax.Array:
    """Returns `[..., 3]` float32 win, draw and loss of a reward (1, 0 or -1)."""
    return jnp.stack([reward > 0, reward == 0, reward < 0], axis=-1).astype(jnp.float32)


def soft_result(value: jax.Array, draw: jax.Array) -> jax.Array:
    """Returns `[..., 3]` probabilities of win, draw and loss.

    Args:
        value: `[...]` expected result in [-1, 1]; the probabilities agree with it.
        draw: `[...]` probability of a draw, cut to what `value` leaves room for.
    """
    decided = 1 - jnp.minimum(draw, 1 - jnp.abs(value))
    return jnp.stack(
        [(decided + value) / 2, 1 - decided, (decided - value) / 2], axis=-1
    )


def horizon(trace: float, max_moves: int) -> int:
    """Returns after how many moves the rest of a game has a weight below `NEGLIGIBLE`
    in a lambda-return.

    Args:
        trace: lambda.
        max_moves: of the longest game; the result at most, as no more moves follow.
    """
    if trace == 0:
        return 1
    if trace == 1:
        return max_moves
    moves = math.floor(math.log(NEGLIGIBLE) / math.log(trace)) + 1
    return min(moves, max_moves)


def result_targets(
    reward: jax.Array,
    terminated: jax.Array,
    value: jax.Array,
    draw: jax.Array,
    *,
    trace: float,
    horizon: int,
    oldest: jax.Array | int = 0,
) -> tuple[jax.Array, jax.Array]:
    """Computes lambda-returns between the game's result and the search's values.

    Sutton and Barto 2018, equation 12.2, over probabilities of win, draw and loss and
    with the players alternating: the target of a position is the opponent's at the
    next one, mixed with the search's value there, seen from the other side. A game
    whose end is not stored is bootstrapped from the search's value of its newest
    position.

    `T` is the number of rows, a ring of moves in time order; `B` the number of games.

    Args:
        reward: `[T, B]` of move t, to the player who made it.
        terminated: `[T, B]` bool; whether move t ended the game.
        value: `[T, B]` the search's value of the position before move t.
        draw: `[T, B]` the network's probability of a draw there.
        trace: lambda; 1 gives the game's result, 0 the next position's value.
        horizon: moves of the same game after which a bootstrapped target is accepted.
        oldest: `[]` int32; the row of the oldest move.

    Returns:
        `[T, B, 3]` float16 targets for the player to move at t, and `[T, B]` bool,
        whether the game's end is stored or at least `horizon` of its moves follow.
    """
    num_rows, num_games = terminated.shape
    # The newest move first.
    rows = (oldest - 1 - jnp.arange(num_rows, dtype=jnp.int32)) % num_rows

    def step(carry, row):
        targets, is_eligible, target_after, value_after, has_ended, followers = carry
        mixed = (1 - trace) * value_after + trace * target_after
        target = jnp.where(
            terminated[row, :, None],
            one_hot_result(reward[row]),
            jnp.flip(mixed, axis=-1),
        )
        has_ended |= terminated[row]
        followers = jnp.where(terminated[row], 0, followers + 1)
        targets = targets.at[row].set(target.astype(targets.dtype))
        is_eligible = is_eligible.at[row].set(has_ended | (followers >= horizon))
        result = soft_result(value[row], draw[row])
        return (targets, is_eligible, target, result, has_ended, followers), None

    newest = jnp.flip(soft_result(value[rows[0]], draw[rows[0]]), axis=-1)
    carry = (
        jnp.zeros((num_rows, num_games, 3), jnp.float16),
        jnp.zeros((num_rows, num_games), bool),
        newest,
        newest,
        jnp.zeros(num_games, bool),
        jnp.full(num_games, -1, jnp.int32),
    )
    (targets, is_eligible, *_), _ = jax.lax.scan(step, carry, rows)
    return targets, is_eligible
