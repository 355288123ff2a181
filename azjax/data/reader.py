"""Reads stored games, whole ones only, in the order in which they were played."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from azjax.data.files import GAMES, GameFile, readable_files
from azjax.data.rows import (
    Rows,
    checked_run,
    from_table,
    opened_parquet,
    state_bytes,
    stated_game,
    with_policy_values,
)
from azjax.games import Game
from azjax.remote import Directory, as_directory

MAX_POSITION_BYTES = 2**30  # of the positions of a file, in memory


class WholeGames(NamedTuple):
    """Finished games from their first position on.

    path: the file with their last moves.
    rows: their positions, game by game.
    starts: `[G]` int64; the first row of each game.
    """

    path: Directory
    rows: Rows
    starts: np.ndarray


def stored_files(sources: Sequence[str], game: Game) -> list[list[GameFile]]:
    """Returns the files of games of each source, checked.

    Args:
        sources: run directories, or directories of files of games.
        game: the game.

    Raises:
        ValueError: a source has no games, or games of another game or schema or of
            several runs, or is damaged.
        OSError: a source cannot be read.
    """
    found = []
    for source in sources:
        files = _files_of(source)
        if len({checked_run(file.path, game) for file in files}) > 1:
            raise ValueError(f"{source} holds games of several runs")
        found.append(files)
    return found


def stored_game(source: str) -> Game:
    """Returns the game of a source of `stored_files`, as its first file states it.

    Raises:
        ValueError: the source has no games, or is damaged.
        OSError: the source cannot be read.
    """
    return stated_game(_files_of(source)[0].path)


def _files_of(source: str) -> list[GameFile]:
    directory = as_directory(source)
    if not directory.is_dir():
        raise ValueError(f"there is no directory {source}")
    files = readable_files(directory / GAMES) or readable_files(directory)
    if not files:
        raise ValueError(f"{source} holds no games")
    return files


def read_games(files: Sequence[GameFile], game: Game) -> Iterator[WholeGames]:
    """Yields the finished games of one run, file by file; see `games_of_file`."""
    for number in range(len(files)):
        games = games_of_file(files, number, game)
        if games is not None:
            yield games


def games_of_file(
    files: Sequence[GameFile], number: int, game: Game
) -> WholeGames | None:
    """Returns the finished games of one run that end in a file; None if there are none.

    Their moves in earlier files are read there. Games that lack their beginning,
    because older files were deleted, are left out.

    Args:
        files: of one source of `stored_files`.
        number: index of the file.
        game: the game.

    Raises:
        ValueError: a file is damaged, or holds values that no search gives.
        OSError: a file cannot be read.
    """
    file = files[number]
    table = _read_table(file.path, game)
    of_row, terminated = table["game"].to_numpy(), table["terminated"].to_numpy()
    table = _of_games(table, of_row[terminated])
    tables, lacking = [table], table["game"].to_numpy()
    for earlier in reversed(files[:number]):
        is_first = table["ply"].to_numpy() == 0
        lacking = np.setdiff1d(lacking, table["game"].to_numpy()[is_first])
        # A game has a move or more in each iteration.
        if not len(lacking) or earlier.last < file.first - game.max_moves:
            break
        table = _of_games(_read_table(earlier.path, game), lacking)
        tables.append(table)
    table = pa.concat_tables(tables)
    table = table.sort_by([("game", "ascending"), ("ply", "ascending")])
    starts, is_whole = _classify(table)
    lengths = np.diff(np.append(starts, table.num_rows))
    whole = table.filter(pa.array(np.repeat(is_whole, lengths)))
    if not whole.num_rows:
        return None
    try:
        rows = from_table(whole, game)
    except ValueError as error:
        raise ValueError(f"{file.path}: {error}") from None
    ends = np.cumsum(lengths[is_whole])
    return WholeGames(file.path, rows, ends - lengths[is_whole])


def _of_games(table: pa.Table, games: np.ndarray) -> pa.Table:
    return table.filter(pa.array(np.isin(table["game"].to_numpy(), games)))


def _classify(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first row of each game, and whether the game is whole.

    Args:
        table: positions, by game and ply.
    """
    game, ply, terminated = (
        table[name].to_numpy() for name in ("game", "ply", "terminated")
    )
    is_first = np.append(True, np.diff(game) != 0)[: len(game)]
    starts = np.flatnonzero(is_first)
    if not len(starts):
        return starts, np.zeros(0, bool)
    lasts = np.append(starts[1:], len(game)) - 1
    place = np.arange(len(game)) - np.repeat(starts, lasts - starts + 1)
    has_all = np.logical_and.reduceat(ply == place, starts)
    num_ends = np.add.reduceat(terminated.astype(np.int64), starts)
    return starts, has_all & (num_ends == 1) & terminated[lasts]


def _read_table(path: Directory, game: Game) -> pa.Table:
    with opened_parquet(path) as parquet:
        about = parquet.metadata
        groups = map(about.row_group, range(about.num_row_groups))
        num_values = sum(
            group.column(number).num_values
            for group in groups
            for number in range(about.num_columns)
        )
        # A small file can declare any number of equal positions.
        if about.num_rows * state_bytes(game) + 8 * num_values > MAX_POSITION_BYTES:
            raise ValueError(
                f"{path} has {about.num_rows:,} positions of more than "
                f"{MAX_POSITION_BYTES:,} bytes"
            )
        table = with_policy_values(parquet.read())
    for name in ("game", "ply", "terminated"):
        if table[name].null_count:
            raise ValueError(f"{path}: {name} has missing values")
    return table
