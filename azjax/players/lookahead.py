"""One-move lookahead."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games import Game, State

PORTION = 64  # moves evaluated at once


def after_each_move(
    game: Game,
    state: State,
    evaluate: Callable[[State], Any],
    illegal: Any,
    *,
    portion: int = PORTION,
) -> Any:
    """Evaluates the position after each legal move.

    Legal moves are evaluated in portions: of chess's 4672 actions about 30 are legal,
    and the successors of all actions of many games would not fit in memory.

    Args:
        game: the game, with A actions.
        state: a position that is not terminated.
        evaluate: maps a position to numbers, leaves `[]`.
        illegal: the numbers of illegal actions, leaves `[]`.
        portion: number of legal moves evaluated at once.

    Returns:
        The numbers of all actions, leaves `[A]`.
    """
    num_actions = game.num_actions
    portion = min(portion, num_actions)
    legal = game.legal_action_mask(state)
    # Padded with `num_actions`, which is out of range.
    size = -(-num_actions // portion) * portion
    moves = jnp.flatnonzero(legal, size=size, fill_value=num_actions)

    def evaluate_some(carry):
        start, found = carry
        some = jax.lax.dynamic_slice(moves, (start,), (portion,))
        seen = jax.vmap(lambda move: evaluate(game.step(state, move)))(some)
        found = jax.tree.map(
            lambda all_, new: all_.at[some].set(new, mode="drop"), found, seen
        )
        return start + portion, found

    found = jax.tree.map(
        lambda leaf, seen: jnp.full(num_actions, leaf, seen.dtype),
        illegal,
        jax.eval_shape(evaluate, state),
    )
    return jax.lax.while_loop(
        lambda carry: carry[0] < legal.sum(), evaluate_some, (jnp.int32(0), found)
    )[1]


def result_of_mover(game: Game, before: State, after: State) -> jax.Array:
    """Returns `[]` float32, the result in `after` for the player to move in `before`; 0
    if `after` is not terminated."""
    return game.rewards(after)[before.current_player]
