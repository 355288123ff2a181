"""Stores games of people and of other programs as a run stores its own."""

import contextlib
import itertools
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.data.files import GAMES, GameFileWriter
from azjax.data.rows import Rows, pack_states
from azjax.games import Game, GameRecord, State
from azjax.games.chance import after_outcome
from azjax.games.core import select
from azjax.games.host import compiled, first_states
from azjax.games.reading import game_of, game_texts, replayed

GAMES_AT_ONCE = 256
MAX_LOSS = 0.2  # of the expected result, by a move that is a policy target


class Imported(NamedTuple):
    """What was stored.

    game: the game.
    games: number of stored games.
    positions: number of stored positions.
    left_out: number of games that were not stored, by reason.
    """

    game: Game
    games: int
    positions: int
    left_out: dict[str, int]


class Labels(NamedTuple):
    """What is known of the positions of a game, whose moves are numbered from 0.

    policies: probabilities by action before each move, and, if known, after the last.
    values: expected results for player 0 before each move, in [-1, 1], then that after
        the last; None, or left out at the end, where it is not known.
    """

    policies: Sequence[Mapping[int, float]]
    values: Sequence[float | None]


Teacher = Callable[[Game, GameRecord], Labels]


def import_games(
    paths: Sequence[Path],
    directory: Path,
    game: Game | None = None,
    *,
    teacher: Teacher | None = None,
    skip_unreadable: bool = False,
    report: Callable[[int], None] = lambda positions: None,
    remark: Callable[[str], None] = lambda text: None,
) -> Imported:
    """Stores the games of files in `directory/games`, which `stored_files` reads.

    The policy target of a position is the move that was played, its value the result of
    the game; random opening moves are left out. In games with evaluations the value is
    that of the position, the regret what the move cost, and a move that cost more than
    `MAX_LOSS` is no policy target. A game may have ended before its rules end it, by
    resignation or agreement. Games without result, forfeited games, and games whose
    stated result is not that of the rules are left out.

    With a teacher, policy targets, values and, by its values, regrets are the
    teacher's, and a position is as probably drawn as its value allows. In games with
    chance the regret is 0: the outcome after a move decides what it cost.

    Args:
        paths: files that `azjax.games.read_games` reads.
        directory: must not exist; it is created with its content, or not at all.
        game: the game; by default that of the first file.
        teacher: labels the games that are stored.
        skip_unreadable: whether to leave out games that cannot be read, such as those
            with an illegal move or of another game than the first.
        report: called after each batch of games, with the number of positions so far.
        remark: called with a line about each game that is left out because it cannot be
            read, or in which something was doubtful.

    Raises:
        ValueError: a file cannot be read, or has no game to store; or the directory
            exists.
        OSError: the directory cannot be written.
    """
    left_out: Counter[str] = Counter()
    with new_directory(directory) as partial:
        # The first game decides which game the others must be of.
        read = _read(paths, game, skip_unreadable, left_out, remark)
        first = next(read, None)
        if first is None:
            why = f": left out {reasons(left_out)}" if left_out else ""
            raise ValueError(f"no games in {', '.join(map(str, paths))}{why}")
        made = first[0]
        records = (record for _, record in itertools.chain([first], read))
        batches = iter(lambda: list(itertools.islice(records, GAMES_AT_ONCE)), [])
        num_games, num_positions, run = 0, 0, secrets.token_hex(8)
        (partial / GAMES).mkdir(parents=True)
        with GameFileWriter(partial / GAMES, made, run=run, seed=0) as writer:
            for iteration, batch in enumerate(batches, 1):
                rows = rows_of(made, batch, num_games, left_out, teacher)
                if len(rows.game):
                    num_games += len(np.unique(rows.game))
                    num_positions += len(rows.game)
                    writer.add(iteration, lambda rows=rows: rows)
                report(num_positions)
            writer.flush()
        if not num_games:
            raise ValueError(f"no game can be stored: {reasons(left_out)}")
    return Imported(made, num_games, num_positions, dict(left_out))


@contextlib.contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """A context with the path of a directory to create and fill, which becomes
    `directory` at its end; after an exception it is deleted."""
    if os.path.lexists(directory):  # also a link to nothing
        raise ValueError(f"{directory} exists: give a new directory")
    partial = directory.with_name(f".{directory.name}.{secrets.token_hex(4)}")
    try:
        yield partial
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def reasons(left_out: dict[str, int]) -> str:
    """Returns the numbers of games that were left out as text."""
    return ", ".join(f"{number:,} {reason}" for reason, number in left_out.items())


def _read(
    paths: Sequence[Path],
    game: Game | None,
    skip_unreadable: bool,
    left_out: Counter[str],
    remark: Callable[[str], None],
) -> Iterator[tuple[Game, GameRecord]]:
    """Yields the games of files; see `import_games`."""
    first = game
    for path in paths:
        for number, found in enumerate(game_texts(path, game), 1):
            try:
                made = game_of(found, game)
                if made != (first or made):
                    raise ValueError(
                        f"{path}: game {number} is of {made!r}, an earlier one of "
                        f"{first!r}: import each game to a directory of its own, or "
                        "give the game, whose options replace those of the files"
                    )
                record = replayed(compiled(made), found)
            except ValueError as error:
                if not skip_unreadable:
                    raise
                left_out["unreadable"] += 1
                remark(f"left out: {error}")
                continue
            if record.note:
                remark(f"{path}: game {number}: {record.note}")
            first = made
            yield made, record


def rows_of(
    game: Game,
    records: Sequence[GameRecord],
    first_id: int,
    left_out: Counter[str],
    teacher: Teacher | None = None,
) -> Rows:
    """Returns the positions of games, game by game.

    Args:
        game: the game.
        records: at most `GAMES_AT_ONCE` games with legal moves.
        first_id: id of the first stored game.
        left_out: the games that are not stored are counted here, by reason.
        teacher: labels the games.
    """
    longest = max(1, *(len(record.moves) for record in records))
    moves = np.full((GAMES_AT_ONCE, longest), -1, np.int32)
    for row, record in zip(moves, records, strict=False):
        row[: len(record.moves)] = record.moves
    last, before = first_states(game, len(moves)), []
    for moves_now in moves.T:
        before.append(last)
        last = jax.device_get(_step(game, last, moves_now))
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *before)  # [L, G, ...]
    rewards = np.asarray(_rewards(game, last))[:, 0]
    stored, results = np.zeros(moves.shape, bool), np.zeros(len(moves), np.float32)
    # Expected results for player 0 before each move, and after the last.
    values = np.full((len(moves), moves.shape[1] + 1), np.nan, np.float32)
    labels: dict[int, Labels] = {}
    for index, record in enumerate(records):
        is_over = bool(np.asarray(last.terminated)[index])
        numbers = [  # outcomes of chance have no rows of their own
            number
            for number in range(record.opening_moves, len(record.moves))
            if record.moves[number] < game.num_actions
        ]
        if record.result is None:
            left_out["without result"] += 1
        elif record.is_forfeit:
            left_out["forfeited"] += 1
        elif is_over and rewards[index] != record.result:
            left_out["with another result than by the rules"] += 1
        elif not numbers:
            left_out["without moves"] += 1
        else:
            stored[index, numbers] = True
            results[index] = record.result
            label = Labels([{m: 1.0} for m in record.moves], (None, *record.values))
            if teacher is not None:
                label = teacher(game, record)
            labels[index] = label
            values[index, : len(label.values)] = np.array(label.values, np.float32)
    place = row, number = np.nonzero(stored)  # game by game
    player = np.asarray(states.current_player).T[place]
    sign = (1 - 2 * player).astype(np.float32)
    # Where it is not known, a value is the result of the game, and the loss 0.
    known = np.where(np.isnan(values), results[:, None], values)[:, :-1]
    loss = np.nan_to_num(values[:, :-1] - values[:, 1:])
    value = known[place] * sign + 0.0  # no -0.0
    regret = np.maximum(0, loss[place] * sign) + 0.0
    result = results[row]
    may_be_drawn = np.ones(len(row), bool)
    policies = [labels[i].policies[at] for i, at in np.argwhere(stored).tolist()]
    if teacher is None:
        may_be_drawn = result == 0
        for at in np.flatnonzero(regret > MAX_LOSS):
            policies[at] = {}
    actions = [action for policy in policies for action in policy]
    probabilities = [share for policy in policies for share in policy.values()]
    last_number = stored.shape[1] - 1 - stored[:, ::-1].argmax(axis=1)
    terminated = number == last_number[row]
    ids = np.cumsum(stored.any(axis=1)) - 1
    outcome = None
    if game.num_outcomes:
        following = np.pad(moves, ((0, 0), (0, 1)), constant_values=-1)[:, 1:]
        outcome = np.maximum(following[place] - game.num_actions, -1).astype(np.int16)
    return Rows(
        game=first_id + ids[row],
        ply=(np.cumsum(stored, axis=1)[place] - 1).astype(np.int32),
        player=player,
        move=moves[place],
        state=np.swapaxes(pack_states(states, 2), 0, 1)[place],
        policy_counts=np.array([len(policy) for policy in policies], np.int64),
        policy_actions=np.array(actions, np.int32),
        policy_probabilities=np.array(probabilities, np.float32),
        policy_values=np.full(len(actions), np.nan, np.float32),
        value=value,
        draw_probability=np.where(may_be_drawn, 1 - np.abs(value), 0),
        regret=regret,
        reward=np.where(terminated, result * sign, 0) + 0.0,
        terminated=terminated,
        simulations=np.zeros(len(row), np.int32),
        outcome=outcome,
    )


@jax.jit(static_argnames="game")
def _step(game: Game, states: State, moves: jax.Array) -> State:
    """Makes a move in each game that has one."""
    after = jax.vmap(game.step)(states, jnp.maximum(moves, 0))
    if game.num_outcomes:
        outcome = moves - game.num_actions
        drawn = after_outcome(game, states, outcome)
        after = jax.vmap(select)(outcome >= 0, drawn, after)
    return jax.vmap(select)(moves >= 0, after, states)


@jax.jit(static_argnames="game")
def _rewards(game: Game, states: State) -> jax.Array:
    return jax.vmap(game.rewards)(states)
