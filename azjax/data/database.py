"""SQL over the games of a run, by DuckDB; reads only."""

import contextlib
import functools
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa

from azjax.data.files import readable_files
from azjax.data.queries import VIEWS
from azjax.data.rows import checked_run, file_schema, initial_state, unpack_states
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
    """A context with the views of `VIEWS` over all files of games in a directory, and
    the function `notation(state, action)`, which returns the game's text of an action.

    Raises:
        ValueError: there are none, or one has another game or schema or is damaged, or
            DuckDB is not installed.
        OSError: a file cannot be read.
    """
    try:
        import duckdb  # noqa: PLC0415, an extra
    except ModuleNotFoundError:
        raise ValueError(
            "queries need duckdb, which is not installed: pip install 'azjax[data]'"
        ) from None
    import pyarrow.dataset as pa_dataset  # noqa: PLC0415, slow to import

    paths = [file.path for file in readable_files(directory)]
    if not paths:
        raise ValueError(f"{directory} holds no games")
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
        of_arrays: Any = "arrow"  # declared as an enum
        connection.create_function(
            "notation",
            functools.partial(_notation, game),
            ["BLOB", "INTEGER"],
            "VARCHAR",
            type=of_arrays,
        )
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


def _notation(game: Game, states: Any, actions: Any) -> Any:
    """Returns the texts of actions in packed positions, as columns of Arrow."""
    packed = states.to_pylist()
    rows = np.frombuffer(b"".join(packed), np.uint8).reshape(len(packed), -1)
    positions = unpack_states(game, rows)
    texts: dict[tuple[bytes, int], str] = {}
    for row, pair in enumerate(zip(packed, actions.to_pylist(), strict=True)):
        if pair not in texts:
            position = jax.tree.map(operator.itemgetter(row), positions)
            texts[pair] = game.action_to_text(position, pair[1])
    pairs = zip(packed, actions.to_pylist(), strict=True)
    return pa.array([texts[pair] for pair in pairs], pa.string())


def _line(error: Exception) -> str:
    """Returns a message of DuckDB in one line: its first paragraph, which has the
    closest names, without the place in the SQL."""
    text = str(error).strip() or type(error).__name__
    return " ".join(text.split("\n\n")[0].split())[:300]
