"""Value targets."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.checks import check_number

NEGLIGIBLE = 1e-3  # maximum weight of the bootstrap value in a lambda-return


def one_hot_result(reward: jax.Array) -> jax.Array:
    """Returns `[..., 3]` float32 win, draw and loss of a reward (1, 0 or -1)."""
    return jnp.stack([reward > 0, reward == 0, reward < 0], axis=-1).astype(jnp.float32)


def soft_result(value: jax.Array, draw: jax.Array) -> jax.Array:
    """Returns `[..., 3]` probabilities of win, draw and loss.

    Args:
        value: `[...]` expected result in [-1, 1], which the probabilities match.
        draw: `[...]` probability of a draw, clipped to 1 - |value|.
    """
    decided = 1 - jnp.minimum(draw, 1 - jnp.abs(value))
    return jnp.stack(
        [(decided + value) / 2, 1 - decided, (decided - value) / 2], axis=-1
    )


def horizon(td_lambda: float, max_moves: int) -> int:
    """Returns the number of moves after which the rest of a game has a weight below
    `NEGLIGIBLE` in a lambda-return.

    Args:
        td_lambda: lambda.
        max_moves: of the longest game; upper bound of the result.
    """
    if td_lambda == 0:
        return 1
    if td_lambda == 1:
        return max_moves
    moves = math.floor(math.log(NEGLIGIBLE) / math.log(td_lambda)) + 1
    return min(moves, max_moves)


class ValueTarget(NamedTuple):
    """A value target, computed from stored moves.

    compute: `compute(reward, terminated, value, draw)` returns `[T, B, 3]`
        probabilities of win, draw and loss for the player to move at each of T moves in
        B game slots, in time order; see `lambda_returns` for its arguments. They are
        stored as float16.
    horizon: number of moves after which a position of an unfinished game becomes
        eligible; the unknown rest of the game should then have negligible weight in its
        target. At least 1; a `TrainConfig` also needs room in the replay for the
        horizon of its `learner.td_lambda`.
    """

    compute: Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
    horizon: int


def lambda_target(td_lambda: float, max_moves: int) -> ValueTarget:
    """Returns the value target of `lambda_returns`.

    Args:
        td_lambda: lambda, in [0, 1].
        max_moves: of the longest game.

    Raises:
        ValueError: `td_lambda` is not in [0, 1].
    """
    check_number("td_lambda", td_lambda, at_least=0, at_most=1)
    return ValueTarget(
        functools.partial(lambda_returns, td_lambda=td_lambda),
        horizon(td_lambda, max_moves),
    )


def lambda_returns(
    reward: jax.Array,
    terminated: jax.Array,
    value: jax.Array,
    draw: jax.Array,
    *,
    td_lambda: float,
) -> jax.Array:
    """Computes lambda-returns between the game's result and the search's values.

    Sutton and Barto 2018, equation 12.2, for probabilities of win, draw and loss and
    alternating players: `target[t] = flip(td_lambda * target[t + 1] + (1 - td_lambda) *
    search_value[t + 1])`, where `flip` exchanges win and loss. An unfinished game is
    bootstrapped from the search value of its newest position.

    `T` is the number of moves, in time order; `B` the number of game slots.

    Args:
        reward: `[T, B]` reward of move t, to the player who made it.
        terminated: `[T, B]` bool; whether move t ended the game.
        value: `[T, B]` search value of the position before move t.
        draw: `[T, B]` the network's probability of a draw there.
        td_lambda: lambda of the lambda-return (1: game result, 0: next search value).

    Returns:
        `[T, B, 3]` float16 targets for the player to move at t.
    """

    def step(carry, move):
        target_after, value_after = carry
        reward, terminated, value, draw = move
        mixed = (1 - td_lambda) * value_after + td_lambda * target_after
        target = jnp.where(
            terminated[:, None], one_hot_result(reward), jnp.flip(mixed, axis=-1)
        )
        return (target, soft_result(value, draw)), target.astype(jnp.float16)

    # From the next player's point of view: `step` flips it.
    newest = jnp.flip(soft_result(value[-1], draw[-1]), axis=-1)
    moves = (reward, terminated, value, draw)
    return jax.lax.scan(step, (newest, newest), moves, reverse=True)[1]
