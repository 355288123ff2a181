"""Stored moves as arrays, and their check by the rules of the game."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from azjax.data import Rows, unpack_states
from azjax.games import Game, State
from azjax.training.self_play import Trajectory
from azjax.training.stored_policy import StoredPolicy, action_dtype, is_sparse


class StoredMoves(NamedTuple):
    """N stored moves, NumPy leaves `[N, ...]`.

    trajectory: without time and slot axes.
    ply: `[N]` int32; moves since the game's opening.
    game: `[N]` int64; id of the game, for messages.
    """

    trajectory: Trajectory
    ply: np.ndarray
    game: np.ndarray


def moves_of(rows: Rows, game: Game, policy_entries: int) -> StoredMoves:
    """Returns the moves of N rows, NumPy leaves `[N, ...]`.

    Args:
        rows: positions as stored.
        game: their game.
        policy_entries: K, stored entries of each policy, see `store_policy`.
    """
    leaves: dict[str, Any] = {
        "state": unpack_states(game, rows.state),
        "action": rows.move.astype(action_dtype(game.num_actions)),
        "policy": _policies(rows, game.num_actions, policy_entries),
    }
    others = [name for name in Trajectory._fields if name not in leaves]
    leaves |= {name: getattr(rows, name) for name in others}
    return StoredMoves(Trajectory(**leaves), rows.ply, rows.game)


def make_check(game: Game) -> Callable[[Trajectory, State], jax.Array]:
    """Returns a jitted `(moves, after) -> [N]` bool: whether the rules allow each move
    and its policy target, and give what is stored about it. The leaves are `[N, ...]`.
    """
    return jax.jit(jax.vmap(functools.partial(_is_right, game)))


def check_moves(
    check: Callable[[Trajectory, State], jax.Array], moves: StoredMoves, after: State
) -> None:
    """Checks moves by the rules.

    Args:
        check: from `make_check`.
        moves: N moves, leaves `[N, ...]`.
        after: the position after each, leaves `[N, ...]`; any after the last of a game.

    Raises:
        ValueError: the rules do not allow a move, or give another position, end or
            reward after it.
    """
    is_right = np.asarray(check(moves.trajectory, after))
    if not is_right.all():
        row = int(is_right.argmin())
        raise ValueError(
            "the stored games hold a move, a policy target or a result that the rules "
            f"do not allow: move {moves.ply[row] + 1} of game {moves.game[row]}"
        )


def _is_right(game: Game, move: Trajectory, after: State) -> jax.Array:
    """Returns whether the rules allow a move and its policy target, and give what is
    stored about the move.

    Args:
        game: the game.
        move: one move.
        after: the position after the move, unless it ended the game.
    """
    action, policy = move.action.astype(jnp.int32), move.policy
    mask = game.legal_action_mask(move.state)
    actions = jnp.arange(mask.size) if policy.action is None else policy.action
    is_legal = mask[action] & (mask[actions] | (policy.probability == 0)).all()
    expected = game.step(move.state, action)
    # People resign, or agree to a draw.
    ends_early = move.terminated & ~expected.terminated
    reward = game.rewards(expected)[move.state.current_player]
    same = jax.tree.map(lambda a, b: (a == b).all(), expected, after)
    is_same = jnp.stack(jax.tree.leaves(same)).all()
    return (
        is_legal
        & ~move.state.terminated
        & (ends_early | (expected.terminated == move.terminated))
        & (ends_early | (reward == move.reward))
        & (move.terminated | is_same)
    )


def _policies(rows: Rows, num_actions: int, entries: int) -> StoredPolicy:
    """Returns the policies in the form of the replay, as `store_policy` does."""
    count, counts = len(rows.move), rows.policy_counts
    of_row = np.repeat(np.arange(count), counts)
    if not is_sparse(num_actions, entries):
        dense = np.zeros((count, num_actions), np.float16)
        dense[of_row, rows.policy_actions] = rows.policy_probabilities
        return StoredPolicy(cast(Any, dense), None)
    # By row, the largest probability first.
    order = np.lexsort((-rows.policy_probabilities, of_row))
    place = np.arange(len(of_row)) - np.repeat(np.cumsum(counts) - counts, counts)
    order, kept_row = order[place < entries], of_row[place < entries]
    place = place[place < entries]
    probability = np.zeros((count, entries), np.float32)
    probability[kept_row, place] = rows.policy_probabilities[order]
    total = probability.sum(axis=1, keepdims=True)
    probability /= np.where(total > 0, total, 1)
    # The other entries have probability 0 and the first actions that are not used yet.
    used = np.zeros((count, min(2 * entries, num_actions)), bool)
    actions = rows.policy_actions[order]
    is_low = actions < used.shape[1]
    used[kept_row[is_low], actions[is_low]] = True
    unused = np.argsort(used, axis=1, kind="stable")[:, :entries]
    missing = np.arange(entries) - np.minimum(counts, entries)[:, None]
    action = np.take_along_axis(unused, np.maximum(missing, 0), axis=1)
    action[kept_row, place] = actions
    stored: Any = (
        probability.astype(np.float16),
        action.astype(action_dtype(num_actions)),
    )
    return StoredPolicy(*stored)
