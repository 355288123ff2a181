"""SQL over the games of a run, by DuckDB, and ready queries; reads only."""

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
from azjax.data.rows import checked_run, file_schema, pack_states, unpack_states
from azjax.games import Game
from azjax.games.host import first_turns

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


# `rows` are the rows of the files, `ends` the last rows of the ended games. `notation`
# returns the text of an action. `+ 0` turns the -0 of a draw into 0.
VIEWS = {
    "positions": """
        SELECT rows.* REPLACE (notation(rows.state, rows.move) AS move),
            rows.move AS action,
            CAST(ends.reward * (CASE WHEN rows.player = ends.player THEN 1 ELSE -1 END)
                + 0 AS FLOAT) AS result
        FROM rows LEFT JOIN ends USING (game)
    """,
    "games": """
        SELECT any_value(run) AS run, any_value(seed) AS seed, game,
            min(iteration) AS first_iteration, max(iteration) AS last_iteration,
            count(*) AS num_moves, min(ply) = 0 AS has_beginning,
            bool_or(terminated) AS ended,
            max(CASE WHEN terminated THEN reward * (1 - 2 * player) END) + 0
                AS first_player_result
        FROM rows GROUP BY game
    """,
    "openings": """
        SELECT rows.run, rows.seed, rows.game, rows.iteration, rows.state,
            rows.state IN (SELECT state FROM initial) AS is_initial_position,
            rows.player, notation(rows.state, rows.move) AS move, rows.value,
            rows.simulations, rows.move AS action,
            CAST(ends.reward * (CASE WHEN rows.player = ends.player THEN 1 ELSE -1 END)
                + 0 AS FLOAT) AS result
        FROM rows LEFT JOIN ends USING (game) WHERE rows.ply = 0
    """,
}


class Query(NamedTuple):
    """A ready query.

    purpose: one line.
    sql: reads the views.
    """

    purpose: str
    sql: str


QUERIES = {
    "openings": Query(
        "First moves from the initial position, in tenths of the iterations.",
        """
        WITH first AS (
            SELECT *, (iteration - 1) * 10 // (SELECT max(iteration) FROM openings)
                AS tenth
            FROM openings WHERE is_initial_position
        )
        SELECT min(iteration) AS first_iteration, max(iteration) AS last_iteration,
            move, count(*) AS games,
            count(*) / sum(count(*)) OVER (PARTITION BY tenth) AS share,
            avg(value) AS mean_value, avg(result) AS mean_result
        FROM first GROUP BY tenth, move ORDER BY tenth, games DESC, move
        """,
    ),
    "repeated": Query(
        "The positions that occurred most often.",
        """
        WITH most AS (
            SELECT state, count(*) AS times FROM rows GROUP BY state
            HAVING times > 1 ORDER BY times DESC, state LIMIT 20
        )
        SELECT state, any_value(times) AS times, count(DISTINCT game) AS games,
            count(DISTINCT move) AS moves, avg(value) AS mean_value,
            stddev_pop(value) AS value_deviation,
            avg(ends.reward * (CASE WHEN rows.player = ends.player THEN 1 ELSE -1 END))
                AS mean_result
        FROM rows JOIN most USING (state) LEFT JOIN ends USING (game)
        GROUP BY state ORDER BY times DESC, state
        """,
    ),
    "calibration": Query(
        "The search's values against the results, by ply.",
        """
        SELECT ply // 10 * 10 AS from_ply,
            least(floor(value * 5), 4) / 5 AS from_value, count(*) AS positions,
            avg(value) AS mean_value, avg(result) AS mean_result
        FROM positions WHERE result IS NOT NULL
        GROUP BY from_ply, from_value ORDER BY from_ply, from_value
        """,
    ),
    "longest": Query(
        "The longest games.",
        """
        SELECT game, first_iteration, num_moves, ended, first_player_result
        FROM games ORDER BY num_moves DESC, game LIMIT 20
        """,
    ),
    "draws": Query(
        "The network's probability of a draw against the share of draws.",
        """
        SELECT least(floor(draw_probability * 10), 9) / 10 AS from_probability,
            count(*) AS positions, avg(draw_probability) AS mean_probability,
            avg(CASE WHEN result = 0 THEN 1 ELSE 0 END) AS share_of_draws
        FROM positions WHERE result IS NOT NULL
        GROUP BY from_probability ORDER BY from_probability
        """,
    ),
    "regret": Query(
        "How often another move than the search's best was played, by ply.",
        """
        SELECT ply, count(*) AS positions,
            avg(CASE WHEN regret > 0 THEN 1 ELSE 0 END) AS share_with_regret,
            avg(regret) AS mean_regret, max(regret) AS max_regret
        FROM rows GROUP BY ply ORDER BY ply LIMIT 40
        """,
    ),
}


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
    # DuckDB gets the files as one table of Arrow and reads of it what a query needs; it
    # has no access to other files.
    dataset = pa_dataset.dataset(
        [str(path) for path in paths],
        schema=file_schema(game, run=runs.pop()),
        format="parquet",
    )
    packed = [pack_states(state, 0).tobytes() for state in first_turns(game)]
    initial = pa.table({"state": pa.array(packed, dataset.schema.field("state").type)})
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
