"""Reads stored games, whole ones only, in the order in which they were played."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from azjax.data.files import GAMES, GameFile, readable_files
from azjax.data.rows import (
    MAX_FILE_BYTES,
    Rows,
    checked_run,
    from_table,
    stated_game,
    with_policy_values,
)
from azjax.games import Game, make
from azjax.remote import Directory, as_directory, open_object

if TYPE_CHECKING:
    import pyarrow as pa


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
            several runs, or is damaged; or pyarrow is not installed.
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
        ValueError: the source has no games, or is damaged; or pyarrow is not installed.
        OSError: the source cannot be read.
    """
    return make(stated_game(_files_of(source)[0].path))


def _files_of(source: str) -> list[GameFile]:
    try:
        import pyarrow  # noqa: F401, PLC0415, an extra
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install 'azjax[data]'"
        ) from None
    directory = as_directory(source)
    if not directory.is_dir():
        raise ValueError(f"there is no directory {source}")
    files = readable_files(directory / GAMES) or readable_files(directory)
    if not files:
        raise ValueError(f"{source} holds no games")
    return files


def read_games(files: Sequence[GameFile], game: Game) -> Iterator[WholeGames]:
    """Yields the finished games of one run, file by file.

    Games that lack their beginning, because older files were deleted, or their end are
    left out. A game that goes on in the next file is yielded with that file.

    Args:
        files: of one source of `stored_files`.
        game: the game.

    Raises:
        ValueError: a file is damaged, or holds values that no search gives.
        OSError: a file cannot be read.
    """
    import pyarrow as pa  # noqa: PLC0415, an extra

    unfinished: list[pa.Table] = []
    for file in files:
        table = pa.concat_tables([*unfinished, _read_table(file.path)])
        table = table.sort_by([("game", "ascending"), ("ply", "ascending")])
        starts, is_whole, goes_on = _classify(table)
        lengths = np.diff(np.append(starts, table.num_rows))
        unfinished = [table.filter(pa.array(np.repeat(goes_on, lengths)))]
        whole = table.filter(pa.array(np.repeat(is_whole, lengths)))
        if whole.num_rows:
            try:
                rows = from_table(whole, game)
            except ValueError as error:
                raise ValueError(f"{file.path}: {error}") from None
            ends = np.cumsum(lengths[is_whole])
            yield WholeGames(file.path, rows, ends - lengths[is_whole])


def _classify(table: "pa.Table") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the first row of each game, whether the game is whole, and whether later
    rows may make it whole.

    Args:
        table: positions, by game and ply.
    """
    game, ply, terminated = (
        table[name].to_numpy() for name in ("game", "ply", "terminated")
    )
    is_first = np.append(True, np.diff(game) != 0)[: len(game)]
    starts = np.flatnonzero(is_first)
    if not len(starts):
        nothing = np.zeros(0, bool)
        return starts, nothing, nothing
    lasts = np.append(starts[1:], len(game)) - 1
    place = np.arange(len(game)) - np.repeat(starts, lasts - starts + 1)
    has_all = np.logical_and.reduceat(ply == place, starts)
    num_ends = np.add.reduceat(terminated.astype(np.int64), starts)
    is_whole = has_all & (num_ends == 1) & terminated[lasts]
    return starts, is_whole, has_all & (num_ends == 0)


def _read_table(path: Directory) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415, an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    source: Any = path if isinstance(path, Path) else open_object(path, MAX_FILE_BYTES)
    try:
        return with_policy_values(pq.ParquetFile(source).read())
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # of the file system
        reason = str(error).splitlines()[0][:200]
        raise ValueError(f"{path} is damaged: {reason}") from None
