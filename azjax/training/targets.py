"""What the network should have said of a game's result."""

import jax
import jax.numpy as jnp


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


def result_targets(
    reward: jax.Array,
    terminated: jax.Array,
    value: jax.Array,
    draw: jax.Array,
    trace: float,
) -> tuple[jax.Array, jax.Array]:
    """Computes lambda-returns between the game's result and the search's opinion.

    Sutton and Barto 2018, equation 12.2, over probabilities of win, draw and loss and
    with the players alternating: the target of a position is the opponent's at the
    next one, mixed with what the search thought there, seen from the other side.

    `T` is the number of moves, `B` the number of games.

    Args:
        reward: `[T, B]` of move t, to the player who made it.
        terminated: `[T, B]` bool; whether move t ended the game.
        value: `[T, B]` the search's value of the position before move t.
        draw: `[T, B]` the network's probability of a draw there.
        trace: lambda; 1 gives the game's result, 0 the next position's value.

    Returns:
        `[T, B, 3]` float32 targets for the player to move at t, and `[T, B]` bool,
        whether the game's end lies within the T moves. Targets of other games are what
        is known so far.
    """

    def step(carry, inputs):
        target_after, known_after, opinion_after = carry
        reward, terminated, opinion = inputs
        mixed = (1 - trace) * opinion_after + trace * target_after
        target = jnp.where(
            terminated[:, None], one_hot_result(reward), jnp.flip(mixed, axis=-1)
        )
        known = terminated | known_after
        return (target, known, opinion), (target, known)

    opinion = soft_result(value, draw)  # [T, B, 3]
    # Nothing is known after the last move but what was thought before it.
    last = jnp.flip(opinion[-1], axis=-1)
    carry = (last, jnp.zeros_like(terminated[-1]), last)
    _, (target, known) = jax.lax.scan(
        step, carry, (reward, terminated, opinion), reverse=True
    )
    return target, known
