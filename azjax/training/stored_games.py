"""Stored games in place of self-play or of a part of it, see
`TrainConfig.learn_from`."""

import heapq
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from azjax.data import GAMES, read_games, stored_files
from azjax.games import Game
from azjax.remote import as_directory, resolved
from azjax.training.config import TrainConfig
from azjax.training.lanes import Lanes
from azjax.training.self_play import Games, Trajectory
from azjax.training.stored_moves import StoredMoves, check_moves, make_check, moves_of


class _Slots:
    """The queued moves of each slot, and games without a slot."""

    def __init__(self, number: int):
        self._moves: StoredMoves | None = None
        self._waiting: list[
            np.ndarray
        ] = []  # rows of `_moves` of games, the last first
        self._queues = [np.zeros(0, np.int64) for _ in range(number)]
        self._lengths = [(0, slot) for slot in range(number)]  # a heap

    @property
    def shortest(self) -> int:
        """The number of moves in the shortest queue."""
        return self._lengths[0][0]

    @property
    def has_games(self) -> bool:
        """Whether there are games without a slot."""
        return bool(self._waiting)

    def refill(self, moves: StoredMoves, starts: np.ndarray) -> None:
        """Adds games, and drops moves that were taken.

        Args:
            moves: of the games.
            starts: first row of each game.
        """
        first = 0
        if self._moves is not None:
            queued = np.concatenate(self._queues)
            ends = np.cumsum([len(queue) for queue in self._queues])
            self._queues = np.split(np.arange(len(queued)), ends[:-1])
            moves = jax.tree.map(
                lambda old, new: np.concatenate([old[queued], new]), self._moves, moves
            )
            first = len(queued)
        self._moves = moves
        rows = np.arange(first, len(moves.ply))
        self._waiting = np.split(rows, starts[1:])[::-1]

    def start_game(self) -> None:
        """Appends the next game to the shortest queue."""
        game = self._waiting.pop()
        length, slot = self._lengths[0]
        heapq.heapreplace(self._lengths, (length + len(game), slot))
        self._queues[slot] = np.append(self._queues[slot], game)

    def take(self, num_moves: int) -> StoredMoves:
        """Takes moves from each queue; returns them with the next one, which stays in
        the queue: leaves `[num_moves + 1, S, ...]`."""
        rows = np.stack([queue[: num_moves + 1] for queue in self._queues], axis=1)
        self._queues = [queue[num_moves:] for queue in self._queues]
        self._lengths = [(length - num_moves, slot) for length, slot in self._lengths]
        return jax.tree.map(lambda leaf: leaf[rows], self._moves)


class StoredGames:
    """Gives the moves of the slots with stored games, S of the B slots of a run.

    The finished games of all sources follow one another in the order in which they were
    played; after the last comes the first again. The next game goes to the slot that is
    free first, so that a chunk is a function of the files and its number alone. One
    file after the other is read, so that the memory does not grow with the sources.
    """

    def __init__(self, config: TrainConfig, game: Game, lanes: Lanes):
        """Checks the sources, and reads nothing more.

        Args:
            config: the run's settings, with `learn_from`.
            game: the game.
            lanes: their placement.

        Raises:
            ValueError: a source is the run's own directory, or cannot be used; see
                `stored_files`.
            OSError: a source cannot be read.
        """
        self._game, self._lanes = game, lanes
        _check_not_own(config)
        self._sources = config.learn_from
        self._files = stored_files(config.learn_from, game)
        self._num_moves = config.self_play.moves_per_chunk
        self._num_slots = config.stored_slots
        self._policy_entries = config.replay.policy_entries
        self._check = make_check(game)
        self._chunks = self._read_chunks()
        self._number = 0

    def chunk(self, iteration: int) -> tuple[Games, Trajectory, dict[str, Any]]:
        """Returns the moves of an iteration, the positions after them, and metrics.

        Args:
            iteration: completed iterations of the run.

        Returns:
            The games that go on after the chunk, leaves `[L, S / L, ...]`; the moves,
            leaves `[L, T, S / L, ...]`; finished games and the first player's score.

        Raises:
            ValueError: a source is damaged, or holds moves that the rules do not allow.
            OSError: a source cannot be read.
        """
        for _ in range(self._number, iteration):
            next(self._chunks)
        self._number = iteration + 1
        moves = next(self._chunks)
        self._check_moves(moves)
        now, after = (
            jax.tree.map(lambda leaf: leaf[rows], moves)  # noqa: B023, used at once
            for rows in (np.s_[:-1], -1)
        )
        finished = now.trajectory.terminated
        won = now.trajectory.reward * (1 - 2.0 * now.trajectory.state.current_player)
        metrics = {
            "games": finished.sum(),
            "first_player_score": won[finished].mean() if finished.any() else 0.0,
        }
        games = Games(state=after.trajectory.state, moves=after.ply)
        return (
            jax.tree.map(lambda leaf: self._by_lane(leaf, 0), games),
            jax.tree.map(lambda leaf: self._by_lane(leaf, 1), now.trajectory),
            jax.tree.map(np.asarray, metrics),
        )

    def _by_lane(self, leaf: np.ndarray, slot_axis: int) -> jax.Array:
        """Divides the slots into lanes, and copies them to the devices."""
        number, shape = self._lanes.number, leaf.shape
        split = (*shape[:slot_axis], number, -1, *shape[slot_axis + 1 :])
        laned = np.moveaxis(leaf.reshape(split), slot_axis, 0)
        return jax.make_array_from_callback(
            laned.shape, self._lanes.by_lane, lambda index: laned[index]
        )

    def _check_moves(self, moves: StoredMoves) -> None:
        """Checks moves `[T + 1, S, ...]` by the rules; see `check_moves`."""
        played = jax.tree.map(lambda leaf: leaf[:-1], moves)
        after = jax.tree.map(lambda leaf: leaf[1:], moves.trajectory.state)
        flat = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (played, after)
        )
        try:
            check_moves(self._check, *flat)
        except ValueError as error:
            raise ValueError(f"{', '.join(self._sources)}: {error}") from None

    def _read_chunks(self) -> Iterator[StoredMoves]:
        """Yields the chunks, with the next move of each slot: `[T + 1, S, ...]`."""
        slots = _Slots(self._num_slots)
        source = self._read_moves()
        while True:
            while slots.shortest <= self._num_moves:
                if not slots.has_games:
                    slots.refill(*next(source))
                slots.start_game()
            yield slots.take(self._num_moves)

    def _read_moves(self) -> Iterator[tuple[StoredMoves, np.ndarray]]:
        """Yields moves of whole games, and the first one of each, again and again."""
        while True:
            was_empty = True
            for files in self._files:
                for games in read_games(files, self._game):
                    was_empty = False
                    moves = moves_of(games.rows, self._game, self._policy_entries)
                    yield moves, games.starts
            if was_empty:
                raise ValueError(f"no finished game in {', '.join(self._sources)}")


def _check_not_own(config: TrainConfig) -> None:
    """Checks that a run does not learn from the games that it keeps.

    A chunk would depend on when the files were written and deleted, and a resumed run
    would differ from one that was not stopped.
    """
    own = resolved(config.directory)
    for source in config.learn_from:
        if resolved(as_directory(source)) in (own, own / GAMES):
            raise ValueError(
                "learn_from must not name the run's own directory, whose games change "
                f"while it trains: {source}; learn from them in a new run"
            )
