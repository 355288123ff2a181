"""Stored games with new targets: every position is searched again by another player.

The new games are written to `DIRECTORY/unfinished`, a file for each file of the
sources, and the folder gets its final name, `games`, when all of them are there. A
start with the same arguments continues after the files that are there.
"""

import functools
import hashlib
import itertools
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azjax.data import (
    GAMES,
    Rows,
    WholeGames,
    drop_after,
    game_files,
    read_games,
    stored_files,
    unpack_states,
)
from azjax.data.files import GameFile, GameFileWriter, file_size
from azjax.data.rows import check_values, checked_run
from azjax.devices import jit_network, spread
from azjax.files import replace_file
from azjax.games import Game, State
from azjax.players import AlphaZeroPlayer
from azjax.players.batches import batch_layout
from azjax.players.serialization import named_leaves
from azjax.settings import Seed, check, check_int
from azjax.training.config import ReplayConfig
from azjax.training.game_reader import make_check, moves_of
from azjax.training.run.directory import LOCK_FILE, locked
from azjax.training.stored_policy import (
    StoredPolicy,
    listed_entries,
    store_policy,
    store_values,
)

ABOUT_FILE = "reanalysis.json"
POSITIONS_AT_ONCE = 512
REPORT_SECONDS = 15.0  # at least, between two reports within a file
_UNFINISHED = "unfinished"
_MAX_ABOUT_BYTES = 2**24


class Reanalyzed(NamedTuple):
    """What the directory holds.

    games: number of games.
    positions: number of positions.
    """

    games: int
    positions: int


def reanalyze(
    sources: Sequence[str],
    directory: Path,
    player: AlphaZeroPlayer,
    *,
    seed: int = 0,
    batch_size: int = POSITIONS_AT_ONCE,
    report: Callable[[str], None] = lambda line: None,
) -> Reanalyzed:
    """Writes the finished games of stored ones with new targets to `directory/games`.

    Positions, moves, results and the order of the games remain. The policy target, the
    value, the probability of a draw, the regret and the number of simulations are those
    of a search by `player`, without exploration and from an empty tree. The ids count
    the games, and the iterations the files.

    All games are checked before anything is written. A call that was interrupted
    continues if it is repeated with the same arguments; after the end it does nothing.

    Args:
        sources: run directories, or directories of files of games; see `stored_files`.
        directory: must be missing, empty, or of the same work.
        player: searches with `player.simulations` simulations.
        seed: from which all keys of the searches are made.
        batch_size: positions in a search; compiled once.
        report: called with a line of text after each file, and about every
            `REPORT_SECONDS` within a file.

    Raises:
        ValueError: a source cannot be read or holds moves that the rules do not allow;
            there is no finished game; `directory` holds something else, or another
            process works in it; the search gives values that are not in [-1, 1].
        OSError: a file cannot be read or written.
    """
    check_int("batch_size", batch_size, 1)
    check("seed", seed, Seed)
    files = stored_files(sources, player.game)
    # What determines the new games, as JSON has it.
    weights = hashlib.sha256()
    for name, leaf in named_leaves(player.variables).items():
        values = np.asarray(leaf)
        weights.update(f"{name} {values.dtype} {values.shape}".encode())
        weights.update(np.ascontiguousarray(values).tobytes())
    about = {
        "game": repr(player.game),
        "files": [
            [
                checked_run(of_source[0].path, player.game),
                *([file.path.name, file_size(file.path)] for file in of_source),
            ]
            for of_source in files
        ],
        "weights": weights.hexdigest(),
        "search": player.search.to_json(),
        "simulations": player.simulations,
        "seed": seed,
    }
    # Checked before the games, which takes long, and again once no other process can
    # write to the directory.
    _check_directory(directory, about)
    total = _count(files, player.game, batch_size)
    if not total.games:
        raise ValueError(f"no finished game in {', '.join(map(str, sources))}")
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory, work="reanalyzing games", option="directory"):
        run = _check_directory(directory, about)
        if run is None:
            run = secrets.token_hex(8)
            text = json.dumps(about | {"run": run}, indent=2)
            replace_file(directory / ABOUT_FILE, text.encode())
        if (directory / GAMES).exists():
            report("finished already")
            return total
        _write_files(
            directory / _UNFINISHED,
            _read_all(files, player.game),
            PositionSearches(player, batch_size, seed),
            run,
            lambda done: report(f"{done:,} of {total.positions:,} positions"),
        )
        (directory / _UNFINISHED).rename(directory / GAMES)
    return total


def _check_directory(directory: Path, about: dict[str, Any]) -> str | None:
    """Returns the run id of the work in a directory; None if it is empty or missing."""
    if not directory.exists():
        return None
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give a new one")
    names = {path.name for path in directory.iterdir()}
    # A killed process leaves such files before it begins.
    if all(name == LOCK_FILE or name.startswith(f".{ABOUT_FILE}.") for name in names):
        return None
    if ABOUT_FILE not in names:
        raise ValueError(f"{directory} is not empty: give a new directory")
    path = directory / ABOUT_FILE
    try:
        with path.open(encoding="utf-8") as file:
            found = json.loads(file.read(_MAX_ABOUT_BYTES))
    except (ValueError, RecursionError):
        found = None
    run = found.get("run") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(run, str) or not run.isalnum():
        raise ValueError(f"{path} is damaged: give a new directory")
    other = [name for name, value in about.items() if found.get(name) != value]
    if other:
        raise ValueError(
            f"{directory} holds a reanalysis with other {' and '.join(other)}: "
            "repeat it as it was started, or give a new directory"
        )
    return run


def _count(
    files: Sequence[Sequence[GameFile]], game: Game, batch_size: int
) -> Reanalyzed:
    """Checks all moves by the rules, and counts games and positions."""
    check = make_check(game)
    num_games = num_positions = 0
    for games in _read_all(files, game):
        moves = moves_of(games.rows, game, ReplayConfig.policy_entries)
        for rows in batches(len(moves.ply), batch_size):
            after = np.minimum(rows + 1, len(moves.ply) - 1)
            try:
                check(take(moves, rows), take(moves.trajectory.state, after))
            except ValueError as error:
                raise ValueError(f"{games.path}: {error}") from None
        num_games += len(games.starts)
        num_positions += len(moves.ply)
    return Reanalyzed(num_games, num_positions)


def _read_all(files: Sequence[Sequence[GameFile]], game: Game) -> Iterator[WholeGames]:
    return itertools.chain(*(read_games(of_source, game) for of_source in files))


def _write_files(
    directory: Path,
    found: Iterator[WholeGames],
    searches: "PositionSearches",
    run: str,
    report: Callable[[int], None],
) -> None:
    """Writes a file for each of `found`, the games in the order of the files, unless it
    is there. Reports the positions so far after each new file, and about every
    `REPORT_SECONDS` within a file."""
    game, seed = searches.player.game, searches.seed
    reported = time.monotonic()

    def report_sum(count: int) -> None:
        """Reports now and then, within a file."""
        nonlocal reported
        if time.monotonic() - reported >= REPORT_SECONDS:
            report(num_positions + count)
            reported = time.monotonic()

    drop_after(directory, sys.maxsize)  # files that a killed process left unfinished
    # The keys of a file's searches are made from its number, so that the files of a
    # continued call are those of an uninterrupted one.
    written = {file.last for file in game_files(directory)}
    num_games = num_positions = 0
    with GameFileWriter(directory, game, run=run, seed=seed) as writer:
        for number, games in enumerate(found, 1):
            if number not in written:
                lengths = np.diff(np.append(games.starts, len(games.rows.game)))
                ids = num_games + np.arange(len(lengths), dtype=np.int64)
                rows = games.rows._replace(game=np.repeat(ids, lengths))
                reported = time.monotonic()
                rows = searches.search_rows(number, rows, report_sum)
                writer.add(number, lambda rows=rows: rows)
                writer.flush()
                report(num_positions + len(games.rows.game))
            num_games += len(games.starts)
            num_positions += len(games.rows.game)


class SearchTargets(NamedTuple):
    """Search results of B positions, in the form in which self-play stores them.

    policy: leaves `[B, ...]`; the improved policy.
    policy_values: `[B, ...]` float16; see `store_values`.
    value: `[B]` float32; the search's value for the player to move.
    draw_probability: `[B]` float32; the network's.
    regret: `[B]` float32; how much lower the search values the played move than its
        best move, at least 0. A move without visits has the value of the position.
    """

    policy: StoredPolicy
    policy_values: jax.Array
    value: jax.Array
    draw_probability: jax.Array
    regret: jax.Array


def batches(num_positions: int, batch_size: int) -> Iterator[np.ndarray]:
    """Yields `[batch_size]` rows at a time; the last row is repeated at the end."""
    for start in range(0, num_positions, batch_size):
        yield np.arange(start, start + batch_size).clip(max=num_positions - 1)


def take(tree: Any, rows: np.ndarray) -> Any:
    """Returns the given rows of all leaves."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)


class PositionSearches:
    """Searches positions in batches of one size, so that one program serves all.

    player: searches with `player.simulations` simulations.
    batch_size: positions in a batch; the last one is padded.
    seed: from which all keys are made.
    """

    def __init__(self, player: AlphaZeroPlayer, batch_size: int, seed: int):
        self._layout = batch_layout(batch_size, [player])
        self._copies = self._layout.replicated(player)
        self.player, self.seed = player, seed

    def search_rows(
        self,
        number: int,
        rows: Rows,
        report: Callable[[int], None] = lambda count: None,
    ) -> Rows:
        """Returns N positions with new targets; `number` is that of the file, from
        which the keys are made. Reports between batches how many positions are
        searched."""
        game, count = self.player.game, len(rows.game)
        states, action = unpack_states(game, rows.state), rows.move.astype(np.int32)
        rng_key = jax.random.fold_in(jax.random.key(self.seed), number)
        found = []
        for index, batch in enumerate(batches(count, self._layout.size)):
            if index:
                report(index * self._layout.size)
            keys = self._layout.keys(jax.random.fold_in(rng_key, index))
            inputs = self._layout.by_position(take((states, action), batch))
            targets = _search(self._layout.mesh, self._copies, keys, *inputs)
            found.append(self._layout.to_host(targets))
        # The last batch was padded.
        targets = jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *found)
        entries = listed_entries(targets.policy, targets.policy_values)
        made = rows._replace(
            policy_counts=entries.counts,
            policy_actions=entries.actions,
            policy_probabilities=entries.probabilities,
            policy_values=entries.values,
            value=targets.value,
            draw_probability=targets.draw_probability,
            regret=targets.regret,
            simulations=np.full(count, self.player.simulations, np.int32),
        )
        try:
            check_values(made, game)
        except ValueError as error:
            raise ValueError(f"the player's search: {error}") from None
        return made


@functools.partial(jit_network, static_argnums=0)
def _search(mesh: Mesh | None, player: AlphaZeroPlayer, *batch: Any) -> SearchTargets:
    """Takes the keys, positions and actions as `batch`."""
    return spread(search_targets, mesh, num_replicated=1)(player, *batch)


def search_targets(
    player: AlphaZeroPlayer, rng_key: jax.Array, states: State, action: jax.Array
) -> SearchTargets:
    """Searches B positions, without exploration and from empty trees.

    Args:
        player: which searches.
        rng_key: consumed; one key, or `[L]` for L lanes of the batch.
        states: the positions, leaves `[B, ...]`, none of them terminated.
        action: `[B]` int32; the moves that were played.
    """
    choice, analysis, _ = player.analyze(rng_key, states, None)
    if choice.draw is None:
        raise ValueError("the player gives no probability of a draw")
    is_visited = analysis.visits > 0
    qvalues = jnp.where(is_visited, analysis.action_values, choice.value[:, None])
    best, played = (
        jnp.take_along_axis(qvalues, move[:, None], axis=1)[:, 0]
        for move in (choice.action, action)
    )
    policy, _ = store_policy(choice.policy, ReplayConfig.policy_entries)
    return SearchTargets(
        policy=policy,
        policy_values=store_values(policy, qvalues, is_visited),
        value=choice.value,
        draw_probability=choice.draw,
        regret=jnp.maximum(best - played, 0),
    )
