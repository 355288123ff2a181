"""Writes positions of self-play to Parquet files, in a background thread."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from azjax.data.files import delete_oldest, file_name
from azjax.data.rows import Rows, file_schema, to_table
from azjax.games import Game
from azjax.remote import Directory, replace_file, store_errors

FILE_BYTES = 64 * 2**20  # uncompressed size at which collected chunks are written
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


class GamesWriter:
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
        self._waiting.append(self._thread.submit(self._collect, iteration, make_rows))

    def flush(self) -> None:
        """Writes all positions that were added, and waits for the end.

        Raises:
            OSError: a file cannot be written.
        """
        self._waiting.append(self._thread.submit(self._write))
        while self._waiting:
            self._waiting.popleft().result()

    def _collect(self, iteration: int, make_rows: Callable[[], Rows]) -> None:
        table = to_table(make_rows(), self._schema, iteration=iteration, **self._about)
        self._tables.append(table)
        self._iterations.append(iteration)
        if sum(table.nbytes for table in self._tables) >= FILE_BYTES:
            self._write()

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
