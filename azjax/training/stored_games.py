"""Stored games in place of self-play or of a part of it, see
`TrainConfig.learn_from`."""

import functools
import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.data import GAMES, Rows, read_games, stored_files, unpack_states
from azjax.games import Game, State
from azjax.remote import as_directory, resolved
from azjax.training.config import TrainConfig
from azjax.training.lanes import Lanes
from azjax.training.self_play import Games, Trajectory
from azjax.training.stored_policy import StoredPolicy, action_dtype, is_sparse


class _Moves(NamedTuple):
    """N stored moves, NumPy leaves `[N, ...]`.

    trajectory: without time and slot axes.
    ply: `[N]` int32; moves since the game's opening.
    game: `[N]` int64; id of the game, for messages.
    """

    trajectory: Trajectory
    ply: np.ndarray
    game: np.ndarray


class _Slots:
    """The queued moves of each slot, and games without a slot."""

    def __init__(self, number: int):
        self._moves: _Moves | None = None
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

    def refill(self, moves: _Moves, starts: np.ndarray) -> None:
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

    def take(self, num_moves: int) -> _Moves:
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
        self._files = stored_files(config.learn_from, game)
        self._num_moves = config.self_play.moves_per_chunk
        self._num_slots = config.stored_slots
        self._policy_entries = config.replay.policy_entries
        self._check = jax.jit(jax.vmap(functools.partial(_is_right, game)))
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

    def _check_moves(self, moves: _Moves) -> None:
        """Checks moves by the rules.

        Args:
            moves: leaves `[T + 1, S, ...]`.

        Raises:
            ValueError: the rules do not allow a move, or give another position, end or
                reward after it.
        """
        played = jax.tree.map(lambda leaf: leaf[:-1], moves)
        after = jax.tree.map(lambda leaf: leaf[1:], moves.trajectory.state)
        flat = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (played.trajectory, after)
        )
        is_right = np.asarray(self._check(*flat)).reshape(played.ply.shape)
        if not is_right.all():
            row = tuple(np.argwhere(~is_right)[0])
            raise ValueError(
                "the stored games hold a move that the rules do not allow: move "
                f"{played.ply[row] + 1} of game {played.game[row]}"
            )

    def _read_chunks(self) -> Iterator[_Moves]:
        """Yields the chunks, with the next move of each slot: `[T + 1, S, ...]`."""
        slots = _Slots(self._num_slots)
        source = self._read_moves()
        while True:
            while slots.shortest <= self._num_moves:
                if not slots.has_games:
                    slots.refill(*next(source))
                slots.start_game()
            yield slots.take(self._num_moves)

    def _read_moves(self) -> Iterator[tuple[_Moves, np.ndarray]]:
        """Yields moves of whole games, and the first one of each, again and again."""
        while True:
            was_empty = True
            for files in self._files:
                for games in read_games(files, self._game):
                    was_empty = False
                    yield self._moves_of(games.rows), games.starts
            if was_empty:
                raise ValueError("the stored games hold no finished game")

    def _moves_of(self, rows: Rows) -> _Moves:
        num_actions = self._game.num_actions
        leaves: dict[str, Any] = {
            "state": unpack_states(self._game, rows.state),
            "action": rows.move.astype(action_dtype(num_actions)),
            "policy": _policies(rows, num_actions, self._policy_entries),
        }
        others = [name for name in Trajectory._fields if name not in leaves]
        leaves |= {name: getattr(rows, name) for name in others}
        return _Moves(Trajectory(**leaves), rows.ply, rows.game)


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
        return _numpy_policy(dense, None)
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
    stored = action.astype(action_dtype(num_actions))
    return _numpy_policy(probability.astype(np.float16), stored)


def _numpy_policy(probability: Any, action: Any) -> StoredPolicy:
    return StoredPolicy(probability, action)
