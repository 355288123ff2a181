"""Solved positions: reading them, a player's mistakes in them, and storing them as
games of one move, to learn from."""

import csv
import dataclasses
import functools
import importlib.resources
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.arena import exhaustive
from azjax.arena.matches import Poll, no_poll
from azjax.arena.statistics import mean_interval, wilson_interval
from azjax.data import GAMES, GameFileWriter, Imported, Rows
from azjax.data.importing import new_directory
from azjax.data.rows import pack_states
from azjax.files import read_whole
from azjax.games import Game, State
from azjax.games.core import select
from azjax.games.ur import RoyalGameOfUr
from azjax.players import ur_solution
from azjax.players.batches import LOCAL, Division, batch_layout
from azjax.players.core import Player, choose
from azjax.settings import check_int
from azjax.text import quoted

GRADED_AT_ONCE = 512  # positions
MAX_FILE_BYTES = 2**26
MAX_GROUP = 80  # characters
_ONE_GROUP = "all"
# Shorter games are solved exhaustively, and those with fewer actions.
_EXHAUSTIVE_MAX_MOVES = 9
_EXHAUSTIVE_MAX_ACTIONS = 5
_EXHAUSTIVE_MAX_POSITIONS = 100_000
# Solvers of games whose positions can repeat: they return N positions, and the values
# of the actions, `[N, A]`; None if there are none.
_SOLVERS: dict[type, Callable[[Any], tuple[State, np.ndarray] | None]] = {
    RoyalGameOfUr: ur_solution.graded_positions
}


@dataclasses.dataclass(frozen=True, eq=False)
class SolvedPositions:
    """N positions of a game with the values of their moves; none is terminated.

    game: the game.
    states: leaves `[N, ...]`, NumPy arrays.
    action_values: `[N, A]` float32; value of each action under perfect play for the
        player to move: 1 win, 0 draw, -1 loss, in games with chance the expected
        result; NaN where illegal.
    groups: `[N]` str; the group in which a position is reported.
    """

    game: Game
    states: State
    action_values: np.ndarray
    groups: np.ndarray

    def __len__(self) -> int:
        return len(self.groups)

    def take(self, rows: np.ndarray) -> "SolvedPositions":
        """Returns the positions at `rows`, `[M]` int."""
        return dataclasses.replace(
            self,
            states=jax.tree.map(lambda leaf: leaf[rows], self.states),
            action_values=self.action_values[rows],
            groups=self.groups[rows],
        )

    def subset(self, count: int, seed: int = 0) -> "SolvedPositions":
        """Returns `count` random positions, or all if there are fewer.

        Every group has the same number of positions, if it is large enough.
        """
        check_int("count", count, 1)
        order = np.random.default_rng(seed).permutation(len(self))
        rank = np.zeros(len(self), int)
        for name in dict.fromkeys(self.groups):
            members = order[self.groups[order] == name]
            rank[members] = np.arange(len(members))
        return self.take(np.sort(order[np.argsort(rank[order], kind="stable")[:count]]))


class MistakeRate(NamedTuple):
    """The mistakes of a player.

    mistakes: number of moves that lower the value of the game.
    positions: number of positions.
    """

    mistakes: int
    positions: int

    @property
    def rate(self) -> float:
        """Mistakes per position."""
        return self.mistakes / self.positions

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the rate."""
        return wilson_interval(self.rate, self.positions)


class Grade(NamedTuple):
    """A player's mistakes in solved positions.

    groups: mistakes by group, in the order of the positions.
    is_mistake: `[N]` bool, for each position.
    lost: `[N]` float32; the win probability that the move in each position loses: half
        the difference to the value of the best one.
    """

    groups: dict[str, MistakeRate]
    is_mistake: np.ndarray
    lost: np.ndarray

    @property
    def mean(self) -> float:
        """The unweighted mean of the groups' rates."""
        return sum(group.rate for group in self.groups.values()) / len(self.groups)

    @property
    def mean_interval(self) -> tuple[float, float]:
        """The 95% confidence interval of `mean`.

        The groups' intervals are combined by the square-and-add rule (Zou and Donner
        2008, "Construction of confidence limits about effect measures", eq. 4).
        """
        groups = self.groups.values()
        below = np.hypot.reduce([group.rate - group.interval[0] for group in groups])
        above = np.hypot.reduce([group.interval[1] - group.rate for group in groups])
        return (
            float(self.mean - below / len(groups)),
            float(self.mean + above / len(groups)),
        )

    @property
    def mean_lost(self) -> float:
        """The mean of `lost`."""
        return float(self.lost.mean())

    @property
    def mean_lost_interval(self) -> tuple[float, float]:
        """The 95% confidence interval of `mean_lost`."""
        return mean_interval(self.lost)


def grade(
    player: Player,
    positions: SolvedPositions,
    rng_key: jax.Array,
    batch_size: int = GRADED_AT_ONCE,
    *,
    division: Division = LOCAL,
    poll: Poll = no_poll,
    on_positions: Callable[[int], object] = lambda positions: None,
) -> Grade:
    """Counts a player's mistakes.

    A mistake is an action whose value is less than that of the best one, or an illegal
    action, which loses the game. The key is consumed.

    Args:
        player: a compiled player; compiled once per player type, not per set of
            weights.
        positions: N positions, at least one.
        rng_key: split among the batches.
        batch_size: positions per batch; the last batch is padded.
        division: how each batch is divided among devices.
        poll: called before each batch; its exceptions end the grading.
        on_positions: called with the number of positions that have just been graded.
    """
    check_int("batch_size", batch_size, 1)
    if not len(positions):
        raise ValueError("no positions to grade")
    layout = batch_layout(batch_size, [player], division)
    player = layout.replicated(player)
    starts = range(0, len(positions), layout.size)
    actions = []
    for start, key in zip(starts, jax.random.split(rng_key, len(starts)), strict=True):
        poll()
        rows = np.arange(start, start + layout.size).clip(max=len(positions) - 1)
        states = layout.by_position(positions.take(rows).states)
        choice = choose(player, layout.keys(key), states, layout.mesh)
        # This blocks, so that polls are spread over time.
        actions.append(np.asarray(choice.action))
        on_positions(min(layout.size, len(positions) - start))
    # `[B, batches]` in memory order: one batch after the other.
    chosen = layout.to_host(np.stack(actions, axis=1)).T.ravel()
    chosen = chosen[: len(positions), None]
    chosen_value = np.take_along_axis(positions.action_values, chosen, axis=1)[:, 0]
    # Not `<`: the NaN of an illegal action must count as a mistake.
    best = np.nanmax(positions.action_values, axis=1)
    is_mistake = ~(chosen_value >= best)
    groups = {}
    for name in dict.fromkeys(positions.groups):
        of_group = is_mistake[positions.groups == name]
        groups[str(name)] = MistakeRate(int(of_group.sum()), len(of_group))
    lost = (best - np.where(np.isnan(chosen_value), -1, chosen_value)) / 2
    return Grade(groups, is_mistake, lost)


@functools.lru_cache(maxsize=1)
def shipped(game: Game) -> SolvedPositions | None:
    """Returns the solved positions of a game; None if there are none.

    A game without options may have a file with its name in `azjax/arena/data`. Games of
    at most nine moves or at most five actions are solved exhaustively, unless they have
    too many positions. The Royal Game of Ur is solved by value iteration where each
    player has two pieces that are not at home.

    Raises:
        ValueError: games of so few moves take longer than `game.max_moves`.
    """
    data = importlib.resources.files("azjax.arena") / "data" / f"{game.name}.csv"
    if data.is_file() and not game.options:
        with importlib.resources.as_file(data) as path:
            return read(game, path)
    if (solver := _SOLVERS.get(type(game))) is not None:
        found = solver(game)
        return found and _one_group(game, *found)
    is_small = (
        game.max_moves <= _EXHAUSTIVE_MAX_MOVES
        or game.num_actions <= _EXHAUSTIVE_MAX_ACTIONS
    )
    if not is_small:
        return None
    try:
        solution = exhaustive.solve(game, max_positions=_EXHAUSTIVE_MAX_POSITIONS)
    except exhaustive.TooManyPositionsError:
        return None
    everything = _one_group(game, solution.states, solution.action_values)
    is_graded = ~solution.states.terminated
    if game.num_outcomes:  # a single action loses no win probability
        is_graded &= (~np.isnan(solution.action_values)).sum(axis=1) > 1
    return everything.take(np.flatnonzero(is_graded))


def _one_group(game: Game, states: State, action_values: np.ndarray) -> SolvedPositions:
    groups = np.full(len(action_values), _ONE_GROUP)
    return SolvedPositions(game, states, action_values, groups)


def read(game: Game, path: str | os.PathLike[str]) -> SolvedPositions:
    """Reads solved positions from a CSV file.

    The header names the columns, in any order; other columns are ignored.

    moves: the actions from the initial position, as numbers from 1, separated by
        spaces, which are optional for games of at most nine actions.
    q0, q1, ...: value of each action under perfect play for the player to move: 1 win,
        0 draw, -1 loss; empty where illegal.
    set: the group in which the position is reported; default `all`.

    Raises:
        ValueError: the game has chance, of whose outcomes a file says nothing; or the
            file or a line cannot be read; the message names the line.
    """
    path = Path(path)
    try:
        content = read_whole(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ValueError(f"{path}: {reason}") from error
    # What each line says by itself; the rules come below, for all lines in one program.
    columns = [f"q{action}" for action in range(game.num_actions)]
    known = {str(action + 1): action for action in range(game.num_actions)}
    reader, lines = csv.reader(content.splitlines()), []
    sequences, values, groups = [], [], []
    try:
        header = next(reader, [])
        _check_header(game, header, columns)
        for fields in filter(None, reader):
            if len(fields) != len(header):
                raise ValueError(
                    f"{len(fields)} fields, but the header has {len(header)}"
                )
            row = dict(zip(header, fields, strict=True))
            for name in columns:
                if row[name].strip() not in ("", "-1", "0", "1"):
                    raise ValueError(
                        f"{name} is {quoted(row[name].strip())}; a value is 1, 0 or -1"
                    )
            numbers = row["moves"].split()
            if len(columns) <= 9:
                numbers = list("".join(numbers))
            for index, number in enumerate(numbers, 1):
                if number not in known:
                    raise ValueError(
                        f"move {index} is {quoted(number)}, not a number from 1 to "
                        f"{len(columns)}"
                    )
            if len(numbers) > game.max_moves:
                raise ValueError(
                    f"{len(numbers)} moves, but no game is longer than {game.max_moves}"
                )
            group = row.get("set", _ONE_GROUP)
            if len(group) > MAX_GROUP:  # an array has room for the longest everywhere
                raise ValueError(
                    f"set has more than {MAX_GROUP} characters: {quoted(group)}"
                )
            lines.append(reader.line_num)
            sequences.append([known[number] for number in numbers])
            numbers = [row[name].strip() or "nan" for name in columns]
            values.append(np.array(numbers, np.float32))
            groups.append(group)
    except (ValueError, csv.Error) as error:
        line = max(reader.line_num, 1)
        raise ValueError(f"{path}, line {line}: {error}") from None
    if not lines:
        raise ValueError(f"{path}, line 1: no positions after the header")
    # Whether the rules allow the moves, and have the same legal actions after them.
    moves = np.full((len(lines), max(map(len, sequences))), -1, np.int32)
    for row, sequence in zip(moves, sequences, strict=True):
        row[: len(sequence)] = sequence
    states, faults, legal = jax.tree.map(np.asarray, _replay(game, moves))
    action_values = np.stack(values)
    is_wrong = ~np.isnan(action_values) != legal
    wrong = states.terminated | is_wrong.any(axis=1) | faults.any(axis=1)
    if wrong.any():
        # The message is about the first wrong line.
        index = int(wrong.argmax())
        if faults[index].any():
            number = int((faults[index] != _NO_FAULT).argmax())
            is_illegal = faults[index, number] == _ILLEGAL
            why = "is illegal" if is_illegal else "follows the game's end"
            fault = f"move {number + 1}, {moves[index, number] + 1}, {why}"
        elif states.terminated[index]:
            fault = "the game is over after these moves"
        else:
            action = int(is_wrong[index].argmax())
            fault = f"q{action} has a value, but the action is illegal"
            if legal[index, action]:
                fault = f"q{action} is empty, but the action is legal"
        raise ValueError(f"{path}, line {lines[index]}: {fault}")
    return SolvedPositions(game, states, action_values, np.array(groups))


def _check_header(game: Game, header: list[str], columns: list[str]) -> None:
    if game.num_outcomes:
        raise ValueError(f"{game} has chance, and a file has no outcomes of chance")
    missing = [name for name in ["moves", *columns] if name not in header]
    if missing:
        raise ValueError(
            f"no column {missing[0]!r} in the header; {game.name} needs moves, "
            f"{columns[0]}, ..., {columns[-1]}"
        )
    if f"q{len(columns)}" in header:
        raise ValueError(
            f"column 'q{len(columns)}' in the header, but {game.name} has "
            f"{len(columns)} actions, the last of them {columns[-1]}"
        )


_NO_FAULT, _ILLEGAL, _GAME_OVER = range(3)


@jax.jit(static_argnames="game")
def _replay(game: Game, moves: jax.Array) -> tuple[State, jax.Array, jax.Array]:
    """Plays sequences of moves from the initial position.

    Args:
        game: the game.
        moves: `[N, T]` int32, -1 after the last move.

    Returns:
        The states after the moves, leaves `[N, ...]`; `[N, T]` int32 faults of the
        moves; and `[N, A]` bool, the legal actions.
    """

    def play_move(state, action):
        is_legal = game.legal_action_mask(state)[action]
        fault = jnp.where(is_legal, _NO_FAULT, _ILLEGAL)
        fault = jnp.where(state.terminated, _GAME_OVER, fault)
        is_move = action >= 0
        after = select(is_move, game.step(state, action), state)
        return after, jnp.where(is_move, fault, _NO_FAULT)

    states, faults = jax.vmap(lambda row: jax.lax.scan(play_move, game.init(), row))(
        moves
    )
    return states, faults, jax.vmap(game.legal_action_mask)(states)


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
        with GameFileWriter(partial / GAMES, game, run=run, seed=0) as writer:
            for number, path in enumerate(paths, 1):
                positions = read(game, path)
                try:
                    rows = _rows_of(positions, num_positions)
                except ValueError as error:
                    raise ValueError(f"{path}, {error}") from None
                num_positions += len(rows.game)
                writer.add(number, lambda rows=rows: rows)
            writer.flush()
    return Imported(game, num_positions, num_positions, {})


def _rows_of(positions: SolvedPositions, first_id: int) -> Rows:
    """Returns N solved positions as games of one move, with ids from `first_id`."""
    values = positions.action_values
    best = np.nanmax(values, axis=1)
    is_best = values == best[:, None]
    move = is_best.argmax(axis=1).astype(np.int32)
    # Where the move ends the game, the rules must give the same result.
    is_over, reward = jax.device_get(_play_move(positions.game, positions.states, move))
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
def _play_move(
    game: Game, states: State, actions: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns `[N]` bool, whether the moves end the game, and `[N]` float32, the result
    then for the player who moved."""
    after = jax.vmap(game.step)(states, actions)
    rewards = jax.vmap(game.rewards)(after)
    is_first = states.current_player == 0
    return after.terminated, jnp.where(is_first, rewards[:, 0], rewards[:, 1])
