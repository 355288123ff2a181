"""Value targets."""

import functools
from collections.abc import Callable
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from azjax.settings import Fraction, Within, check
from azjax.training.config import horizon
from azjax.training.self_play import Trajectory


def one_hot_result(reward: jax.Array) -> jax.Array:
    """Returns `[..., 3]` float32 win, draw and loss of a reward (1, 0 or -1).

    Example:
        >>> training.one_hot_result(jnp.array([1, 0, -1])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return jnp.stack([reward > 0, reward == 0, reward < 0], axis=-1).astype(jnp.float32)


def soft_result(value: jax.Array, draw: jax.Array) -> jax.Array:
    """Returns `[..., 3]` probabilities of win, draw and loss.

    Args:
        value: `[...]` expected result in [-1, 1], which the probabilities match.
        draw: `[...]` probability of a draw, clipped to `1 - |value|`.

    Example:
        >>> training.soft_result(jnp.float32(0.5), jnp.float32(0.25)).tolist()
        [0.625, 0.25, 0.125]
    """
    decided = 1 - jnp.minimum(draw, 1 - jnp.abs(value))
    return jnp.stack(
        [(decided + value) / 2, 1 - decided, (decided - value) / 2], axis=-1
    )


class ValueTarget(NamedTuple):
    """A value target, computed from stored moves.

    compute: `compute(moves)` returns `[T, B, 3]` probabilities of win, draw and loss
        for the player to move at each of T moves in B game slots; the moves are a
        `Trajectory` in time order. They are stored as float16.
    horizon: number of moves after which a position of an unfinished game becomes
        eligible; the unknown rest of the game should then have negligible weight in its
        target. At least 1; a `TrainConfig` also needs room in the replay for the
        horizon of its `learner.td_lambda`.

    Example:
        A target for the `value_target` of `train`, the search's value:

        >>> def compute(moves):
        ...     return training.soft_result(moves.value, moves.draw_probability)
        >>> value_target = training.ValueTarget(compute, horizon=1)
        >>> value_target.compute(trajectory).shape
        (9, 4, 3)
    """

    compute: Callable[[Trajectory], jax.Array]
    horizon: int


def lambda_target(
    td_lambda: float, max_moves: int, *, max_regret: float = 0.0
) -> ValueTarget:
    """Returns the value target of `lambda_returns`.

    Args:
        td_lambda: lambda, in [0, 1].
        max_moves: of the longest game.
        max_regret: see `lambda_returns`.

    Raises:
        ValueError: `td_lambda` is not in [0, 1], or `max_regret` not in [0, 2].

    Example:
        >>> [training.lambda_target(x, max_moves=42).horizon for x in (0.0, 0.8, 1.0)]
        [1, 31, 42]
    """
    check("td_lambda", td_lambda, Fraction)
    check("max_regret", max_regret, Annotated[float, Within(0, 2)])
    return ValueTarget(
        functools.partial(lambda_returns, td_lambda=td_lambda, max_regret=max_regret),
        horizon(td_lambda, max_moves),
    )


def lambda_returns(
    moves: Trajectory, *, td_lambda: float, max_regret: float = 0.0
) -> jax.Array:
    """Computes lambda-returns between the game's result and the search's values.

    Sutton and Barto 2018, equation 12.2, for probabilities of win, draw and loss:
    `target[t] = flip(td_lambda * target[t + 1] + (1 - td_lambda) * search_value[t +
    1])`, where `flip` exchanges win and loss if the other player moves at t + 1. An
    unfinished game is bootstrapped from the search value of its newest position.

    What follows a bad move does not show the value of the position before it. So the
    target of a position whose move has a regret above `max_regret`, and did not win, is
    the search's value there; earlier targets continue from it (Watkins's Q(lambda),
    Sutton and Barto 2018, section 12.10).

    Args:
        moves: T moves in each of B game slots, in time order. Their `reward`,
            `terminated`, `value`, `draw_probability`, `regret`, `outcome`
            and `state.current_player` are used.
        td_lambda: lambda of the lambda-return (1: game result, 0: next search value).
        max_regret: from 0, only the search's best moves count, to 2, all moves count.

    Returns:
        `[T, B, 3]` float16 targets for the player to move at t.

    Example:
        The last two moves of a game that its last move wins, and no values; the players
        alternate:

        >>> zeros = jnp.zeros((2, 1))
        >>> player = jnp.array([[0], [1]])
        >>> moves = trajectory._replace(
        ...     state=dataclasses.replace(trajectory.state, current_player=player),
        ...     reward=jnp.array([[0.0], [1.0]]),
        ...     terminated=jnp.array([[False], [True]]),
        ...     value=zeros,
        ...     draw_probability=zeros,
        ...     regret=zeros,
        ... )
        >>> training.lambda_returns(moves, td_lambda=1.0)[:, 0].tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
        >>> training.lambda_returns(moves, td_lambda=0.0)[:, 0].tolist()
        [[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]
    """
    values = soft_result(moves.value, moves.draw_probability)
    player = moves.state.current_player
    # After the newest move, the carry below is of the same player.
    is_flipped = jnp.zeros_like(moves.terminated)
    is_flipped = is_flipped.at[:-1].set(player[1:] != player[:-1])
    has_not_won = moves.reward <= 0
    if moves.outcome is not None:  # where chance decided, the move was no win
        has_not_won |= moves.outcome >= 0
    is_bad = (moves.regret > max_regret) & has_not_won

    def step(carry, move):
        target_after, value_after = carry
        reward, terminated, is_bad, value, is_flipped = move
        mixed = (1 - td_lambda) * value_after + td_lambda * target_after
        mixed = jnp.where(is_flipped[:, None], jnp.flip(mixed, axis=-1), mixed)
        target = jnp.where(terminated[:, None], one_hot_result(reward), mixed)
        target = jnp.where(is_bad[:, None], value, target)
        return (target, value), target.astype(jnp.float16)

    # Backwards in time; the carry is the target and the search's value of move t + 1.
    in_order = (moves.reward, moves.terminated, is_bad, values, is_flipped)
    _, targets = jax.lax.scan(step, (values[-1], values[-1]), in_order, reverse=True)
    return targets
