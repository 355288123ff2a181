"""Keeps the games of self-play in the run directory, see `azjax.data`."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from azjax.data import GAMES, GameFileWriter, Rows, drop_after, game_files
from azjax.data.rows import checked_run, pack_states
from azjax.files import Directory
from azjax.games import Game
from azjax.training.config import TrainConfig
from azjax.training.run.directory import disk_errors
from azjax.training.run.processes import (
    in_any,
    is_first_process,
    raise_on_all_processes,
)
from azjax.training.self_play import Trajectory
from azjax.training.stored_policy import listed_entries


class GameWriter:
    """Writes the games of a run in the background, in the context of `opened`.

    Each process writes the games of its own lanes.

    config: the run's settings.
    game: the game.
    writer: writes the chunks; None if no games are kept.
    """

    def __init__(self, config: TrainConfig, game: Game):
        self._config = config
        self._game = game
        self.writer: Any = None
        self._failure: OSError | None = None

    @contextlib.contextmanager
    def opened(
        self,
        directory: Directory,
        run: str,
        iteration: int,
    ) -> Iterator[None]:
        """A context in which games are written, after those of a checkpoint with so
        many completed iterations; 0 without one.

        Files with later iterations are deleted, because the run plays these again.
        Games of another run in the directory raise a ValueError.
        """
        games, keeps = directory / GAMES, self._config.data.keep_games
        with raise_on_all_processes():
            if is_first_process():
                for file in game_files(games)[-1:] if keeps else ():
                    if checked_run(file.path, self._game) != run:
                        raise ValueError(f"{file.path} is of another run: move it away")
                drop_after(games, iteration)
        self._failure = None
        if not keeps:
            yield
            return
        max_bytes = self._config.data.max_gigabytes * 1e9
        try:
            with GameFileWriter(
                games,
                self._game,
                run=run,
                seed=self._config.seed,
                process=jax.process_index(),
                max_bytes=max_bytes if is_first_process() else None,
            ) as self.writer:
                yield
        finally:
            self.writer = None

    def add(
        self,
        iteration: int,
        num_simulations: int,
        ply: jax.Array,
        trajectory: Trajectory,
        policy_values: jax.Array,
    ) -> None:
        """Adds the moves of an iteration; the thread that writes them waits for them
        and copies them to the host.

        Args:
            iteration: number of the iteration, from 1.
            num_simulations: of a full search.
            ply: `[L, B / L]` int32; moves since the opening, before the first move.
            trajectory: leaves `[L, T, B / L, ...]`.
            policy_values: `[L, T, B / L, ...]` float16; see `store_values`.
        """
        if self.writer is None or self._failure is not None:
            return
        lanes = np.concatenate(
            [np.arange(ply.shape[0])[shard.index[0]] for shard in _shards(ply)]
        )

        def make_rows() -> Rows:
            arrays = jax.tree.map(
                lambda array: np.concatenate([shard.data for shard in _shards(array)]),
                (ply, trajectory, policy_values),
            )
            return rows_of(self._config, iteration, num_simulations, lanes, *arrays)

        with self._noting_failure():
            self.writer.add(iteration, make_rows)

    def flush(self) -> str:
        """Writes all games so far; called before a checkpoint, from which a run goes on
        with later games.

        The run does not depend on its games: if a process cannot write them, none keeps
        games from then on.

        Returns:
            A line about this, once; else an empty text.
        """
        if self.writer is None:
            return ""
        with self._noting_failure():
            self.writer.flush()
        if not in_any(self._failure is not None):
            return ""
        self.writer = None
        return (
            "the games are not kept from here on, because they cannot be written: "
            f"{self._failure or 'see the other processes'}"
        )

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            with disk_errors(self._config.directory):
                yield
        except OSError as error:
            self._failure = error


def _shards(array: jax.Array) -> list[Any]:
    """Returns this process's parts of a lane array, by lane."""
    return sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)


def rows_of(  # noqa: PLR0917
    config: TrainConfig,
    iteration: int,
    num_simulations: int,
    lanes: np.ndarray,
    first_ply: np.ndarray,
    trajectory: Any,
    policy_values: np.ndarray,
) -> Rows:
    """Returns the positions of an iteration in the lanes of this process, game by game.

    A game's id is `move * num_games + slot`, where `move` counts the moves of each slot
    in the run before the game's first one: it needs no counter in the training state.

    Args:
        config: the run's settings.
        iteration: number of the iteration, from 1.
        num_simulations: of a full search.
        lanes: `[l]` the numbers of the lanes.
        first_ply: `[l, B / L]` moves since the opening, before the first move.
        trajectory: a `Trajectory` of NumPy arrays, `[l, T, B / L, ...]`.
        policy_values: `[l, T, B / L, ...]` float16; see `store_values`.
    """
    num_moves, slots_per_lane = trajectory.action.shape[1:]
    ply = np.empty(trajectory.terminated.shape, np.int32)
    following = first_ply
    for number in range(num_moves):
        ply[:, number] = following
        following = np.where(trajectory.terminated[:, number], 0, following + 1)
    move = (iteration - 1) * num_moves + np.arange(num_moves)
    start = move[:, None] - ply.astype(np.int64)
    slot = lanes[:, None, None] * slots_per_lane + np.arange(slots_per_lane)
    game = start * config.self_play.num_games + slot
    by_slot, policy_values = jax.tree.map(
        lambda leaf: np.moveaxis(leaf, 1, 2), (trajectory, policy_values)
    )

    def flat(leaf: np.ndarray) -> np.ndarray:
        return np.moveaxis(leaf, 1, 2).reshape(-1)

    entries = listed_entries(
        *jax.tree.map(
            lambda leaf: leaf.reshape(-1, leaf.shape[-1]),
            (by_slot.policy, policy_values),
        )
    )
    state = pack_states(by_slot.state, 3)
    return Rows(
        game=flat(game),
        ply=flat(ply),
        player=flat(trajectory.state.current_player),
        move=flat(trajectory.action),
        state=state.reshape(-1, state.shape[-1]),
        policy_counts=entries.counts,
        policy_actions=entries.actions,
        policy_probabilities=entries.probabilities,
        policy_values=entries.values,
        value=flat(trajectory.value),
        draw_probability=flat(trajectory.draw_probability),
        regret=flat(trajectory.regret),
        reward=flat(trajectory.reward),
        terminated=flat(trajectory.terminated),
        outcome=None if trajectory.outcome is None else flat(trajectory.outcome),
        simulations=np.where(
            entries.counts > 0, num_simulations, config.self_play.fast_simulations
        ).astype(np.int32),
    )
