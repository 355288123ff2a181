"""Stores solved positions as games of one move, to learn from."""

import secrets
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena.solved import SolvedPositions, read
from azjax.data import GAMES, GamesWriter, Imported, Rows
from azjax.data.importing import new_directory
from azjax.data.rows import pack_states
from azjax.games import Game, State


def import_positions(paths: Sequence[Path], directory: Path, game: Game) -> Imported:
    """Stores solved positions in `directory/games`, which `stored_files` reads.

    A position becomes a game that begins there, in which the first of the best moves is
    played, and which is then adjudicated: it ends with the result of perfect play. The
    policy target is uniform over the best moves, the value is the solved one.

    Args:
        paths: CSV files that `azjax.arena.read` reads.
        directory: must not exist; it is created with its content, or not at all.
        game: the game.

    Raises:
        ValueError: a file cannot be read, or states another result than the rules do;
            or the directory exists.
        OSError: the directory cannot be written.
    """
    run, num_positions = secrets.token_hex(8), 0
    with new_directory(directory) as partial:
        partial.mkdir(parents=True)
        with GamesWriter(partial / GAMES, game, run=run, seed=0) as writer:
            for number, path in enumerate(paths, 1):
                positions = read(game, path)
                try:
                    rows = rows_of(positions, num_positions)
                except ValueError as error:
                    raise ValueError(f"{path}, {error}") from None
                num_positions += len(rows.game)
                writer.add(number, lambda rows=rows: rows)
            writer.flush()
    return Imported(game, num_positions, num_positions, {})


def rows_of(positions: SolvedPositions, first_id: int) -> Rows:
    """Returns N solved positions as games of one move, with ids from `first_id`."""
    values = positions.action_values
    best = np.nanmax(values, axis=1)
    is_best = values == best[:, None]
    move = is_best.argmax(axis=1).astype(np.int32)
    is_over, reward = jax.device_get(_play(positions.game, positions.states, move))
    is_wrong = is_over & (reward != best)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(
            f"position {row + 1}: action {move[row] + 1} ends the game with "
            f"the result {reward[row]:g}, not {best[row]:g}"
        )
    counts, count = is_best.sum(axis=1), len(best)
    return Rows(
        game=first_id + np.arange(count),
        ply=np.zeros(count, np.int32),
        player=np.asarray(positions.states.current_player),
        move=move,
        state=pack_states(positions.states, 1),
        policy_counts=counts,
        policy_actions=np.nonzero(is_best)[1],
        policy_probabilities=np.repeat(1 / counts, counts).astype(np.float32),
        policy_values=np.repeat(best, counts),
        value=best,
        draw_probability=(best == 0).astype(np.float32),
        regret=np.zeros(count, np.float32),
        reward=best,
        terminated=np.ones(count, bool),
        simulations=np.zeros(count, np.int32),
    )


@jax.jit(static_argnames="game")
def _play(game: Game, states: State, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns `[N]` bool, whether the moves end the game, and `[N]` float32, the result
    then for the player who moved."""
    after = jax.vmap(game.step)(states, actions)
    rewards = jax.vmap(game.rewards)(after)
    is_first = states.current_player == 0
    return after.terminated, jnp.where(is_first, rewards[:, 0], rewards[:, 1])
