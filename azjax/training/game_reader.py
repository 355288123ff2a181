"""Stored games in place of self-play or of a part of it, see
`TrainConfig.learn_from`."""

import heapq
import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Self, cast

import jax
import jax.numpy as jnp
import numpy as np

from azjax.data import (
    GAMES,
    Rows,
    games_of_file,
    stored_files,
    unpack_states,
)
from azjax.data.files import file_size
from azjax.files import as_directory, resolved
from azjax.games import Game, State
from azjax.games.core import select
from azjax.settings import is_int
from azjax.training.config import TrainConfig
from azjax.training.lanes import Lanes
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
    """Returns the moves of N rows, NumPy leaves `[N, ...]`; of each policy
    `policy_entries` entries, see `store_policy`."""
    leaves: dict[str, Any] = {
        "state": unpack_states(game, rows.state),
        "action": rows.move.astype(action_dtype(game.num_actions)),
        "policy": policies_of(rows, game.num_actions, policy_entries),
    }
    others = [name for name in Trajectory._fields if name not in leaves]
    leaves |= {name: getattr(rows, name) for name in others}
    return StoredMoves(Trajectory(**leaves), rows.ply, rows.game)


def make_check(game: Game) -> Callable[[StoredMoves, State], None]:
    """Returns a function that checks N moves by the rules of a game, given the position
    after each, leaves `[N, ...]`; any after the last move of a game.

    It raises ValueError if the rules do not allow a move or its policy target, or give
    another position, end or reward after it.
    """

    @jax.jit
    @jax.vmap
    def is_right(move: Trajectory, after: State) -> jax.Array:
        action, policy = move.action.astype(jnp.int32), move.policy
        mask = game.legal_action_mask(move.state)
        actions = jnp.arange(mask.size) if policy.action is None else policy.action
        is_legal = mask[action] & (mask[actions] | (policy.probability == 0)).all()
        expected = game.step(move.state, action)
        is_possible = jnp.bool(True)
        if move.outcome is not None:
            probabilities = jnp.append(jnp.asarray(game.chance(expected)), 0)
            is_drawn = move.outcome >= 0
            waits_on = probabilities.any() & ~move.terminated
            is_possible = jnp.where(
                is_drawn, probabilities[move.outcome] > 0, ~waits_on
            )
            is_possible &= ~jnp.asarray(game.chance(move.state)).any()
            after_chance = game.chance_step(expected, jnp.int32(move.outcome))
            expected = select(is_drawn, after_chance, expected)
        # People resign, or agree to a draw.
        ends_early = move.terminated & ~expected.terminated
        reward = game.rewards(expected)[move.state.current_player]
        same = jax.tree.map(lambda a, b: (a == b).all(), expected, after)
        is_same = jnp.stack(jax.tree.leaves(same)).all()
        return (
            is_legal
            & is_possible
            & ~move.state.terminated
            & (ends_early | (expected.terminated == move.terminated))
            & (ends_early | (reward == move.reward))
            & (move.terminated | is_same)
        )

    def check(moves: StoredMoves, after: State) -> None:
        are_right = np.asarray(is_right(moves.trajectory, after))
        if not are_right.all():
            row = int(are_right.argmin())
            raise ValueError(
                "the stored games hold a move, a policy target or a result that the "
                f"rules do not allow: move {moves.ply[row] + 1} of game "
                f"{moves.game[row]}"
            )

    return check


def policies_of(rows: Rows, num_actions: int, entries: int) -> StoredPolicy:
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


class _Found(NamedTuple):
    """Moves that were read, NumPy leaves `[N, ...]`.

    moves: of whole games.
    origin: `[N, 3]` int64; number of the file, of the game in it, of the move in that.
    """

    moves: StoredMoves
    origin: np.ndarray


class _Slots:
    """The queued moves of each slot, and games without a slot.

    found: the moves; None if none was read.
    queues: for each slot the rows of `found` that it has yet to give.
    """

    def __init__(self, found: _Found | None, queues: list[np.ndarray]):
        self._found, self._queues = found, queues
        self._lengths = [(len(queue), slot) for slot, queue in enumerate(queues)]
        heapq.heapify(self._lengths)
        self._waiting: list[np.ndarray] = []  # rows of games, the last first

    @property
    def shortest(self) -> int:
        """The number of moves in the shortest queue."""
        return self._lengths[0][0]

    @property
    def num_waiting(self) -> int:
        """The number of games without a slot."""
        return len(self._waiting)

    def refill(self, found: _Found, games: Sequence[np.ndarray]) -> None:
        """Adds games, given the rows of each in `found`; drops moves that were
        taken."""
        first = 0
        if self._found is not None:
            queued = np.concatenate(self._queues)
            ends = np.cumsum([len(queue) for queue in self._queues])
            self._queues = np.split(np.arange(len(queued)), ends[:-1])
            found = jax.tree.map(
                lambda old, new: np.concatenate([old[queued], new]), self._found, found
            )
            first = len(queued)
        self._found = found
        self._waiting = [first + rows for rows in games[::-1]]

    def start_game(self) -> None:
        """Appends the next game to the shortest queue."""
        game = self._waiting.pop()
        length, slot = self._lengths[0]
        heapq.heapreplace(self._lengths, (length + len(game), slot))
        self._queues[slot] = np.append(self._queues[slot], game)

    def take(self, num_moves: int) -> StoredMoves:
        """Takes moves from each queue; returns them with the next one, which stays in
        the queue: leaves `[num_moves + 1, S, ...]`."""
        assert self._found is not None
        rows = np.stack([queue[: num_moves + 1] for queue in self._queues], axis=1)
        self._queues = [queue[num_moves:] for queue in self._queues]
        self._lengths = [(length - num_moves, slot) for length, slot in self._lengths]
        return jax.tree.map(lambda leaf: leaf[rows], self._found.moves)

    def queued(self) -> list[list[int]]:
        """Returns slot, file, game and first move of each queued game."""
        assert self._found is not None
        lengths = [len(queue) for queue in self._queues]
        slot = np.repeat(np.arange(len(lengths)), lengths)
        origin = self._found.origin[np.concatenate(self._queues)]
        begins = (origin[:, 2] == 0) | (np.diff(slot, prepend=-1) > 0)
        return np.column_stack([slot, origin])[begins].tolist()


class GameReader:
    """Gives the moves of the slots with stored games, S of the B slots of a run; a
    context manager that ends its thread.

    A pass gives each finished game of all sources once: file by file, in a random order
    of the files of all sources and of the games in each. The next game goes to the slot
    that is free first.

    A chunk is a function of the files, the run's seed and the cursor, which a
    checkpoint stores. A run that continues reads only the files of the begun games and
    the next file. The cursor stores places in the sources, so only the order of later
    games depends on NumPy's generator.

    A thread reads a file ahead, so that the memory holds two files and the begun games,
    and does not grow with the sources.

    cursor: after the last chunk, as JSON: `files`, a checksum of their names and sizes;
        `next`, the pass, the place of the file in it, and the number of its games that
        have begun; `queued`, slot, file, game and first move of each begun game.
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
        self._game, self._lanes, self._seed = game, lanes, config.seed
        self._sources = config.learn_from
        # Its chunks would depend on when the files are written and deleted, and a
        # resumed run would differ from one that was not stopped.
        own = resolved(config.directory)
        for source in self._sources:
            if resolved(as_directory(source)) in (own, own / GAMES):
                raise ValueError(
                    "learn_from must not name the run's own directory, whose games "
                    f"change while it trains: {source}; learn from them in a new run"
                )
        self._files = [
            (files, number)
            for files in stored_files(config.learn_from, game)
            for number in range(len(files))
        ]
        self._num_moves = config.self_play.moves_per_chunk
        self._num_slots = config.stored_slots
        self._policy_entries = config.replay.policy_entries
        self._check = make_check(game)
        self._thread = ThreadPoolExecutor(1, "stored games")
        paths = [files[number].path for files, number in self._files]
        names = repr([(path.name, file_size(path)) for path in paths])
        self.cursor: Mapping[str, Any] = {
            "files": zlib.crc32(names.encode()),
            "next": [0, 0, 0],
            "queued": [],
        }
        self._continue(self.cursor)

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Ends the thread, after the file that it is reading."""
        self._thread.shutdown(cancel_futures=True)

    def seek(self, cursor: Any) -> None:
        """Continues after the chunk of a cursor, of any origin, unless that was the
        last chunk.

        Raises a ValueError if the files have changed since the cursor was stored.
        """
        if cursor == self.cursor:
            return
        try:
            if not _is_cursor(cursor) or cursor["files"] != self.cursor["files"]:
                raise LookupError
            self._continue(cursor)
        except LookupError:  # also of a game, a file or a slot that is not there
            raise ValueError(
                f"the games in {', '.join(self._sources)} have changed since the "
                "checkpoint: restore the files, or start a new run with --from"
            ) from None

    def _continue(self, cursor: Mapping[str, Any]) -> None:
        number, place, self._num_begun = cursor["next"]
        self._file: tuple[int, int, int] | None = None  # pass, place, number of games
        self._ahead: Future[Any] | None = None
        self._stream = self._read_files(number, place)
        # The begun games are read again, each file once.
        parts, rows, total = [], {}, 0
        games = sorted({(file, game) for _, file, game, _ in cursor["queued"]})
        for file, of_file in itertools.groupby(games, lambda game: game[0]):
            found, rows_of_games = self._read_file(file) or (None, [])
            for _, game in of_file:
                taken = rows_of_games[game]
                part = jax.tree.map(lambda leaf: leaf[taken], found)  # noqa: B023
                parts.append(part)
                rows[file, game] = np.arange(total, total + len(taken))
                total += len(taken)
        # Each slot continues where the last chunk ended.
        queues = [[np.zeros(0, np.int64)] for _ in range(self._num_slots)]
        for slot, file, game, move in cursor["queued"]:
            queues[slot].append(rows[file, game][move:])
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts or [None])
        self._slots = _Slots(joined, [np.concatenate(queue) for queue in queues])
        self.cursor = cursor

    def chunk(self) -> tuple[Trajectory, dict[str, Any]]:
        """Returns the next moves of each slot, leaves `[L, T, S / L, ...]`, and
        metrics: the finished games and the first player's score.

        Raises a ValueError if a source is damaged, or holds moves that the rules do not
        allow.
        """
        slots = self._slots
        # Each slot needs one move more than the chunk has, see below.
        while slots.shortest <= self._num_moves:
            if not slots.num_waiting:
                self._refill()
            slots.start_game()
        moves = slots.take(self._num_moves)
        self.cursor = {**self.cursor, "queued": slots.queued()}
        if self._file is not None:  # else no file was needed since `seek`
            number, place, num_games = self._file
            waiting = slots.num_waiting
            following = (place, num_games - waiting) if waiting else (place + 1, 0)
            self.cursor = {**self.cursor, "next": [number, *following]}
        # One move more was taken, because the rules are checked by the position after
        # each move.
        played = jax.tree.map(lambda leaf: leaf[:-1], moves)
        after = jax.tree.map(lambda leaf: leaf[1:], moves.trajectory.state)
        flat = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (played, after)
        )
        try:
            self._check(*flat)
        except ValueError as error:
            raise ValueError(f"{', '.join(self._sources)}: {error}") from None
        now = played.trajectory
        won = now.reward * (1 - 2.0 * now.state.current_player)
        finished = now.terminated
        metrics = {
            "games": finished.sum(),
            "first_player_score": won[finished].mean() if finished.any() else 0.0,
        }

        def by_lane(leaf: np.ndarray) -> jax.Array:  # `[T, S, ...]`
            split = leaf.reshape(len(leaf), self._lanes.number, -1, *leaf.shape[2:])
            laned = np.moveaxis(split, 1, 0)
            return jax.make_array_from_callback(
                laned.shape, self._lanes.by_lane, lambda index: laned[index]
            )

        return jax.tree.map(by_lane, now), jax.tree.map(np.asarray, metrics)

    def _refill(self) -> None:
        """Takes the file that was read ahead, and begins to read the next one."""
        ahead = self._ahead or self._thread.submit(next, self._stream)
        number, place, found, games = ahead.result()
        self._ahead = self._thread.submit(next, self._stream)
        self._file = number, place, len(games)
        file = int(found.origin[0, 0])
        generator = np.random.default_rng([self._seed, number, 1 + file])
        order = generator.permutation(len(games))[self._num_begun :]
        self._slots.refill(found, [games[index] for index in order])
        self._num_begun = 0

    def _read_files(
        self, number: int, first: int
    ) -> Iterator[tuple[int, int, _Found, list[np.ndarray]]]:
        """Yields pass, place in it, moves and the rows of each game of the files with
        finished games, from a pass and a place on, again and again."""
        while True:
            is_empty = first == 0
            generator = np.random.default_rng([self._seed, number])
            order = generator.permutation(len(self._files)).tolist()
            for place, file in enumerate(order[first:], first):
                read = self._read_file(file)
                if read is not None:
                    is_empty = False
                    yield number, place, *read
            if is_empty:
                raise ValueError(f"no finished game in {', '.join(self._sources)}")
            number, first = number + 1, 0

    def _read_file(self, file: int) -> tuple[_Found, list[np.ndarray]] | None:
        """Returns the moves of a file and the rows of each game; None without games."""
        games = games_of_file(*self._files[file], self._game)
        if games is None:
            return None
        moves = moves_of(games.rows, self._game, self._policy_entries)
        rows = np.arange(len(moves.ply))
        number = np.searchsorted(games.starts, rows, side="right") - 1
        origin = np.column_stack([np.full_like(rows, file), number, moves.ply])
        return _Found(moves, origin), np.split(rows, games.starts[1:])


def _is_cursor(cursor: Any) -> bool:
    """Returns whether a value has the form of a cursor of `GameReader`."""
    try:
        places = [(3, cursor["next"]), *((4, place) for place in cursor["queued"])]
        return all(
            len(place) == size and all(is_int(n) and n >= 0 for n in place)
            for size, place in places
        )
    except (LookupError, TypeError):
        return False
