"""Stored games with new targets: every position is searched again by another player.

The new games are written to `DIRECTORY/unfinished`, a file for each file of the
sources, and the folder gets its final name, `games`, when all of them are there. A
start with the same arguments continues after the files that are there.
"""

import hashlib
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from azjax.checks import check_int, check_seed
from azjax.data import (
    GAMES,
    WholeGames,
    drop_after,
    game_files,
    read_games,
    stored_files,
)
from azjax.data.files import GameFile, file_size
from azjax.data.rows import checked_run
from azjax.games import Game
from azjax.players import AlphaZeroPlayer
from azjax.players.serialization import named_leaves
from azjax.remote import replace_file
from azjax.training.config import ReplayConfig
from azjax.training.lock import LOCK_FILE, locked
from azjax.training.position_searches import PositionSearches, batches, take
from azjax.training.stored_moves import check_moves, make_check, moves_of

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
    check_seed("seed", seed)
    files = stored_files(sources, player.game)
    about = _about(files, player, seed)
    _check_directory(directory, about)
    total = _count(files, player.game, batch_size)
    if not total.games:
        raise ValueError(f"no finished game in {', '.join(map(str, sources))}")
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory, work="reanalyzing games", option="directory"):
        run = _begin(directory, about)
        if (directory / GAMES).exists():
            report("finished already")
            return total
        _write_files(
            directory / _UNFINISHED,
            _whole_games(files, player.game),
            PositionSearches(player, batch_size, seed),
            run,
            lambda done: report(f"{done:,} of {total.positions:,} positions"),
        )
        (directory / _UNFINISHED).rename(directory / GAMES)
    return total


def _about(
    files: Sequence[Sequence[GameFile]], player: AlphaZeroPlayer, seed: int
) -> dict[str, Any]:
    """Returns what determines the new games, as JSON has it."""
    weights = hashlib.sha256()
    for name, leaf in named_leaves(player.variables).items():
        values = np.asarray(leaf)
        weights.update(f"{name} {values.dtype} {values.shape}".encode())
        weights.update(np.ascontiguousarray(values).tobytes())
    return {
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


def _check_directory(directory: Path, about: dict[str, Any]) -> str | None:
    """Returns the run id of the work in a directory; None if it is empty or missing.

    Raises:
        ValueError: it holds something else.
    """
    if not directory.exists():
        return None
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give a new one")
    names = {path.name for path in directory.iterdir()}
    if not {name for name in names if not _is_temporary(name)}:
        return None
    if ABOUT_FILE not in names:
        raise ValueError(f"{directory} is not empty: give a new directory")
    found = _read_about(directory / ABOUT_FILE)
    other = [name for name, value in about.items() if found.get(name) != value]
    if other:
        raise ValueError(
            f"{directory} holds a reanalysis with other {' and '.join(other)}: "
            "repeat it as it was started, or give a new directory"
        )
    return found["run"]


def _is_temporary(name: str) -> bool:
    """Returns whether a file is one that a killed process leaves before it begins."""
    return name == LOCK_FILE or name.startswith(f".{ABOUT_FILE}.")


def _read_about(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            found = json.loads(file.read(_MAX_ABOUT_BYTES))
    except (ValueError, RecursionError):
        found = None
    run = found.get("run") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(run, str) or not run.isalnum():
        raise ValueError(f"{path} is damaged: give a new directory")
    return found


def _begin(directory: Path, about: dict[str, Any]) -> str:
    """Returns the run id of the new games; writes it, with `about`, at the first start.

    Raises:
        ValueError: as in `_check_directory`.
    """
    run = _check_directory(directory, about)
    if run is None:
        run = secrets.token_hex(8)
        text = json.dumps(about | {"run": run}, indent=2)
        replace_file(directory / ABOUT_FILE, text.encode())
    return run


def _count(
    files: Sequence[Sequence[GameFile]], game: Game, batch_size: int
) -> Reanalyzed:
    """Checks all moves by the rules, and counts games and positions.

    Raises:
        ValueError: the rules do not allow a move; or as in `read_games`.
    """
    check = make_check(game)
    num_games = num_positions = 0
    for games in _whole_games(files, game):
        moves = moves_of(games.rows, game, ReplayConfig.policy_entries)
        for rows in batches(len(moves.ply), batch_size):
            after = np.minimum(rows + 1, len(moves.ply) - 1)
            try:
                check_moves(
                    check, take(moves, rows), take(moves.trajectory.state, after)
                )
            except ValueError as error:
                raise ValueError(f"{games.path}: {error}") from None
        num_games += len(games.starts)
        num_positions += len(moves.ply)
    return Reanalyzed(num_games, num_positions)


def _whole_games(
    files: Sequence[Sequence[GameFile]], game: Game
) -> Iterator[WholeGames]:
    """Yields the finished games of all sources."""
    for of_source in files:
        yield from read_games(of_source, game)


def _write_files(
    directory: Path,
    found: Iterator[WholeGames],
    searches: PositionSearches,
    run: str,
    report: Callable[[int], None],
) -> None:
    """Writes a file for each of `found`, unless it is there.

    Args:
        directory: of the files.
        found: the games, in the order of the files.
        searches: which search them.
        run: id of the new games.
        report: called with the number of positions so far after each new file, and
            about every `REPORT_SECONDS` within a file.
    """
    from azjax.data.writer import GamesWriter  # noqa: PLC0415, needs the library

    game, seed = searches.player.game, searches.seed
    drop_after(directory, sys.maxsize)  # files that a killed process left unfinished
    written = {file.last for file in game_files(directory)}
    num_games = num_positions = 0
    with GamesWriter(directory, game, run=run, seed=seed) as writer:
        for number, games in enumerate(found, 1):
            if number not in written:
                rows = searches.search_rows(
                    number,
                    games.rows._replace(game=_count_up(games, num_games)),
                    _now_and_then(report, start=num_positions),
                )
                writer.add(number, lambda rows=rows: rows)
                writer.flush()
                report(num_positions + len(games.rows.game))
            num_games += len(games.starts)
            num_positions += len(games.rows.game)


def _now_and_then(report: Callable[[int], None], start: int) -> Callable[[int], None]:
    """Returns a function that adds `start` to a count and reports the sum, at most once
    in `REPORT_SECONDS`."""
    reported = time.monotonic()

    def report_sum(count: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_SECONDS:
            report(start + count)
            reported = time.monotonic()

    return report_sum


def _count_up(games: WholeGames, first: int) -> np.ndarray:
    """Returns `[N]` int64 ids for the rows of G games, `first` to `first + G - 1`."""
    lengths = np.diff(np.append(games.starts, len(games.rows.game)))
    return np.repeat(first + np.arange(len(lengths), dtype=np.int64), lengths)
