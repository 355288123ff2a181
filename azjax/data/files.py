"""The files of a run's games: names, writing in a background thread, and reading whole
games in the order in which they were played.

A file holds the positions of one or several iterations, as played by one process:
`00000001-00000012-0.parquet` holds those of iterations 1 to 12 of process 0.

Functions that read raise a ValueError, whose message has the path, if files are not
those of one run of the game, or are damaged, and an OSError if they cannot be read;
functions that write raise an OSError.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from azjax.data.rows import (
    Rows,
    checked_run,
    file_schema,
    from_table,
    opened_parquet,
    state_bytes,
    stated_game,
    to_table,
)
from azjax.files import Directory, as_directory, replace_file, store_errors
from azjax.games import Game

GAMES = "games"  # directory of the files in a run directory
FILE_BYTES = 64 * 2**20  # uncompressed size at which collected chunks are written
MAX_POSITION_BYTES = 2**30  # of the positions of a file, in memory

_NAME = re.compile(r"(\d{8,})-(\d{8,})-(\d+)\.parquet")
_UNFINISHED = re.compile(rf"\.{_NAME.pattern}\.\d+")
_GROUP_BYTES = 256 * 2**20  # uncompressed size of a row group, at most
_GROUP_ROWS = 122_880  # of a row group; DuckDB's unit of parallel work
_MAX_WAITING = 2  # chunks that wait for the thread
_DICTIONARIES = (
    *("run", "seed", "iteration", "ply", "player", "move", "reward", "simulations"),
    "policy_actions.list.element",
)
_ENCODINGS = {
    "game": "DELTA_BINARY_PACKED",
    "policy_probabilities.list.element": "BYTE_STREAM_SPLIT",
    "policy_values.list.element": "BYTE_STREAM_SPLIT",
    "value": "BYTE_STREAM_SPLIT",
    "draw_probability": "BYTE_STREAM_SPLIT",
    "regret": "BYTE_STREAM_SPLIT",
}


class GameFile(NamedTuple):
    """A file of positions.

    first: first iteration.
    last: last iteration.
    process: of the run.
    path: of the file.
    """

    first: int
    last: int
    process: int
    path: Directory


def file_name(first: int, last: int, process: int) -> str:
    """Returns the name of the file with the positions of some iterations."""
    return f"{first:08d}-{last:08d}-{process}.parquet"


def game_files(directory: Directory) -> list[GameFile]:
    """Returns the files of positions in a directory, by iteration; none if it does not
    exist. Other files are left out."""
    found = []
    with store_errors(directory):
        for path in directory.iterdir() if directory.is_dir() else ():
            name = _NAME.fullmatch(path.name)
            if name is not None and path.is_file():
                first, last, process = map(int, name.groups())
                found.append(GameFile(first, last, process, path))
    return sorted(found, key=lambda file: file[:3])


def readable_files(directory: Directory) -> list[GameFile]:
    """Returns the files of positions in a directory, by iteration.

    Raises:
        ValueError: a Parquet file has a name that no writer gives.
    """
    found = game_files(directory)
    known = {file.path.name for file in found}
    with store_errors(directory):
        for path in directory.iterdir() if directory.is_dir() else ():
            name = path.name
            if name.endswith(".parquet") and name[0] != "." and name not in known:
                if _NAME.fullmatch(name) is not None:
                    raise ValueError(f"{path} is not a regular file: remove it")
                raise ValueError(
                    f"{path} is not named as files of games are, FIRST-LAST-PROCESS "
                    f"such as {file_name(1, 12, 0)}: rename or remove it"
                )
    return found


def drop_after(directory: Directory, iteration: int) -> None:
    """Deletes the files with later iterations, which the run plays again, and files
    that a killed process left unfinished."""
    with store_errors(directory):
        for file in game_files(directory):
            if file.last > iteration:
                file.path.unlink()
        if isinstance(directory, Path) and directory.is_dir():
            for path in directory.iterdir():
                if _UNFINISHED.fullmatch(path.name):
                    path.unlink()


def delete_oldest(directory: Directory, max_bytes: float) -> None:
    """Deletes the oldest files until the others take at most `max_bytes`. The newest
    file is kept."""
    with store_errors(directory):
        files = game_files(directory)
        sizes = [file_size(file.path) for file in files]
        total = sum(sizes)
        for file, size in zip(files[:-1], sizes, strict=False):
            if total <= max_bytes:
                return
            file.path.unlink()
            total -= size


def file_size(path: Directory) -> int:
    """Returns the bytes of a file."""
    if isinstance(path, Path):
        return path.stat().st_size
    return path.stat().length


class GameFileWriter:
    """Writes the positions of one process of a run; a context manager.

    Chunks are collected to files of `FILE_BYTES`; `flush` writes the rest. Files are
    written as a whole: readers never see a part of one.

    directory: of the files.
    game: the game.
    run: the run's id.
    seed: of the run.
    process: of the run.
    max_bytes: size of all files above which the oldest are deleted; None: another
        process deletes them.
    """

    def __init__(
        self,
        directory: Directory,
        game: Game,
        *,
        run: str,
        seed: int,
        process: int = 0,
        max_bytes: float | None = None,
    ):
        self._directory = directory
        self._about = {"run": run, "seed": seed}
        self._process = process
        self._max_bytes = max_bytes
        self._schema = file_schema(game, run=run)
        self._tables: list[pa.Table] = []
        self._iterations: list[int] = []
        self._waiting: deque[Future[None]] = deque()
        self._thread = ThreadPoolExecutor(1, "games")

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Ends the thread; positions that were not flushed are dropped."""
        self._thread.shutdown(cancel_futures=True)

    def add(self, iteration: int, make_rows: Callable[[], Rows]) -> None:
        """Adds the positions of an iteration, which `make_rows` returns in the thread;
        waits if the thread is more than two chunks behind.

        Raises:
            OSError: an earlier file cannot be written.
        """
        while len(self._waiting) >= _MAX_WAITING:
            self._waiting.popleft().result()

        def collect() -> None:
            table = to_table(
                make_rows(), self._schema, iteration=iteration, **self._about
            )
            self._tables.append(table)
            self._iterations.append(iteration)
            if sum(table.nbytes for table in self._tables) >= FILE_BYTES:
                self._write()

        self._waiting.append(self._thread.submit(collect))

    def flush(self) -> None:
        """Writes all positions that were added, and waits for the end."""
        self._waiting.append(self._thread.submit(self._write))
        while self._waiting:
            self._waiting.popleft().result()

    def _write(self) -> None:
        """Writes the collected positions to a file."""
        if not self._tables:
            return
        iterations = min(self._iterations), max(self._iterations)
        content = to_parquet(pa.concat_tables(self._tables))
        path = self._directory / file_name(*iterations, self._process)
        with store_errors(self._directory):
            if isinstance(path, Path):
                replace_file(path, content)
            else:  # a store replaces objects as a whole
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        self._tables, self._iterations = [], []
        if self._max_bytes is not None:
            delete_oldest(self._directory, self._max_bytes)


def to_parquet(table: pa.Table) -> Any:
    """Returns the bytes of a Parquet file with the table."""
    row_bytes = max(1, table.nbytes // max(1, table.num_rows))
    dictionaries: Any = list(_DICTIONARIES)  # declared as a bool
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        row_group_size=max(1, min(_GROUP_ROWS, _GROUP_BYTES // row_bytes)),
        use_dictionary=dictionaries,
        column_encoding=_ENCODINGS,
        store_schema=True,
    )
    return sink.getvalue().to_pybytes()


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
    """
    found = []
    for source in sources:
        files = _files_of(source)
        if len({checked_run(file.path, game) for file in files}) > 1:
            raise ValueError(f"{source} holds games of several runs")
        found.append(files)
    return found


def stored_game(source: str) -> Game:
    """Returns the game of a source of `stored_files`, as its first file states it."""
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
    """
    file = files[number]
    table = _read_table(file.path, game)
    of_row, terminated = table["game"].to_numpy(), table["terminated"].to_numpy()
    table = _of_games(table, of_row[terminated])
    # Earlier files are read backwards, until each game has its first move.
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
        table = parquet.read()
    for name in ("game", "ply", "terminated"):
        if table[name].null_count:
            raise ValueError(f"{path}: {name} has missing values")
    return table
