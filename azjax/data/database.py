"""SQL over the games of a run, by DuckDB; reads only."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from azjax.data.files import readable_files
from azjax.data.queries import VIEWS
from azjax.data.rows import checked_run, file_schema, initial_state
from azjax.games import Game

# Without access to files, other databases, extensions and Python's variables.
_SETTINGS = (
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class Result(NamedTuple):
    """The result of a query.

    names: of the columns.
    rows: Python values.
    """

    names: list[str]
    rows: list[tuple[Any, ...]]


class Database:
    """The games of a directory, checked and open; see `opened`."""

    def __init__(self, connection: Any):
        self._connection = connection

    def query(self, sql: str) -> Result:
        """Returns the result of one SELECT.

        Raises:
            ValueError: the SQL is invalid, does more than select, or reads other files;
                or a file is damaged.
        """
        import duckdb  # noqa: PLC0415, an extra

        try:
            sql.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the SQL is not valid text: {error}") from None
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1:
                raise ValueError(
                    f"the SQL must be one SELECT, not {len(statements)} statements"
                )
            kind = statements[0].type
            if kind != duckdb.StatementType.SELECT:
                raise ValueError(
                    f"the SQL must be a SELECT, which changes nothing: {kind.name}"
                )
            # A part of a SELECT may change tables: WITH x AS (DELETE ...).
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            try:
                found = self._connection.execute(statements[0])
                names = [column[0] for column in found.description]
                return Result(names, found.fetchall())
            finally:
                self._connection.execute("ROLLBACK")
        except duckdb.Error as error:
            raise ValueError(_line(error)) from None


@contextlib.contextmanager
def opened(directory: Path, game: Game) -> Iterator[Database]:
    """A context with the views of `VIEWS` over all files of games in a directory.

    Raises:
        ValueError: there are none, or one has another game or schema or is damaged, or
            DuckDB or pyarrow is not installed.
        OSError: a file cannot be read.
    """
    try:
        import duckdb  # noqa: PLC0415, an extra
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.dataset as pa_dataset  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed: pip install 'azjax[data]'"
        ) from None
    paths = [file.path for file in readable_files(directory)]
    if not paths:
        raise ValueError(
            f"{directory} holds no games: a run keeps them if pyarrow is installed"
        )
    runs = {checked_run(path, game) for path in paths}
    if len(runs) > 1:
        raise ValueError(f"{directory} holds games of {len(runs)} runs")
    dataset = pa_dataset.dataset(
        [str(path) for path in paths],
        schema=file_schema(game, run=runs.pop()),
        format="parquet",
    )
    initial = pa.table(
        {"state": pa.array([initial_state(game)], dataset.schema.field("state").type)}
    )
    connection = duckdb.connect(":memory:")
    try:
        connection.register("rows", dataset)
        connection.register("initial", initial)
        for setting in _SETTINGS:
            connection.execute(setting)
        try:
            connection.execute(
                "CREATE TABLE ends AS "
                "SELECT game, player, reward FROM rows WHERE terminated"
            )
        except duckdb.Error as error:
            raise ValueError(f"{directory} cannot be read: {_line(error)}") from None
        for name, sql in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
        yield Database(connection)
    finally:
        connection.close()


def _line(error: Exception) -> str:
    """Returns the first line of a message of DuckDB."""
    text = str(error).strip() or type(error).__name__
    return " ".join(text.splitlines()[0].split())[:300]
