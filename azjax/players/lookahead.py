"""What follows each legal move of one position."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from azjax.games import Game, State

PORTION = 64  # moves tried at once


def after_each_move(
    game: Game,
    state: State,
    look: Callable[[State], Any],
    nothing: Any,
    *,
    portion: int = PORTION,
) -> Any:
    """Makes every legal move, and returns what `look` says of where it leads.

    Legal moves are tried some at a time: of the 4672 actions of chess mostly 30 are
    legal, and a position for each action of many games would not fit into memory.

    Args:
        game: the game; A is the number of its actions.
        state: one position, not a finished one.
        look: from a position to numbers, leaves `[]`.
        nothing: the same, for actions that are not legal.
        portion: legal moves that are tried at once.

    Returns:
        Leaves `[A]`.
    """
    num_actions = game.num_actions
    portion = min(portion, num_actions)
    legal = game.legal_action_mask(state)
    # Behind the last of them stands the number of no action.
    size = -(-num_actions // portion) * portion
    moves = jnp.flatnonzero(legal, size=size, fill_value=num_actions)

    def try_some(carry):
        start, found = carry
        some = jax.lax.dynamic_slice(moves, (start,), (portion,))
        seen = jax.vmap(lambda move: look(game.step(state, move)))(some)
        found = jax.tree.map(
            lambda all_, new: all_.at[some].set(new, mode="drop"), found, seen
        )
        return start + portion, found

    found = jax.tree.map(
        lambda leaf, seen: jnp.full(num_actions, leaf, seen.dtype),
        nothing,
        jax.eval_shape(look, state),
    )
    return jax.lax.while_loop(
        lambda carry: carry[0] < legal.sum(), try_some, (jnp.int32(0), found)
    )[1]


def result_of_mover(game: Game, before: State, after: State) -> jax.Array:
    """Returns `[]` float32, the result in `after` for the player to move in `before`;
    0 while the game goes on."""
    return game.rewards(after)[before.current_player]
