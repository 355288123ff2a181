"""`azjax data`: SQL over the games that a run has kept."""

import csv
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax import games
from azjax.data import GAMES, game_files
from azjax.data.database import QUERIES, VIEWS, Result, opened
from azjax.data.rows import stated_game
from azjax.files import as_directory
from azjax.program import note
from azjax.text import did_you_mean, printable
from azjax.training.run.directory import CONFIG_FILE
from azjax.training.run.saved_config import load_any_config

MAX_ROWS = 200  # of a printed table

OVERVIEW = """
SELECT count(*) AS positions, count(DISTINCT game) AS games,
    sum(CAST(terminated AS INTEGER)) AS ended_games,
    min(iteration) AS first_iteration, max(iteration) AS last_iteration
FROM rows
"""


def data_command(
    run: tyro.conf.Positional[str],
    sql: tyro.conf.Positional[str] = "",
    /,
    *,
    as_csv: Annotated[bool, tyro.conf.arg(name="csv")] = False,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Query the games that a run has kept, or imported ones; reads only.

    The views are `positions` (a row for each position), `games` and `openings` (the
    first position of each game); without SQL their columns are printed. The SQL is
    DuckDB's.

    Args:
        run: the run directory, or a directory of imported games.
        sql: a SELECT, or the name of a ready query: openings, repeated, calibration,
            longest, draws, regret. By default an overview.
        as_csv: print CSV.
        as_json: print a JSON object for each row.
    """
    if as_csv and as_json:
        raise ValueError("give one of --csv and --json")
    directory = as_directory(run)
    if not isinstance(directory, Path):
        raise ValueError(f"copy {run}/{GAMES} and config.json here: {run} is remote")
    files = [] if (directory / CONFIG_FILE).exists() else game_files(directory / GAMES)
    if files:  # imported games
        game = stated_game(files[0].path)
    else:
        game = games.make(load_any_config(directory).game)
    query = QUERIES[sql].sql if sql in QUERIES else sql
    if query.isidentifier():
        raise ValueError(
            f"unknown query {query!r}; ready queries are {', '.join(QUERIES)}"
            f"{did_you_mean(query, QUERIES)}"
        )
    with opened(directory / GAMES, game) as database:
        result = database.query(query or OVERVIEW)
        columns = {
            view: database.query(f"SELECT * FROM {view} LIMIT 0").names
            for view in VIEWS
        }
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.names)
        writer.writerows([_plain(value) for value in row] for row in result.rows)
    elif as_json:
        for row in result.rows:
            values = dict(zip(result.names, map(_plain, row), strict=True))
            print(json.dumps(values, default=str))
    else:
        _print_table(result)
    if not sql:
        note("the views with their columns:")
        for view, names in columns.items():
            _note_entry(view, ", ".join(names))
        note("the ready queries:")
        for name, ready in QUERIES.items():
            _note_entry(name, ready.purpose)


def _note_entry(name: str, text: str) -> None:
    """Prints a name with a text, which is wrapped for 80 columns."""
    for number, line in enumerate(textwrap.wrap(text, 56)):
        print(f"    {name if number == 0 else '':12} {line}", file=sys.stderr)


def _print_table(result: Result) -> None:
    """Prints a table. If it is too wide, the names of its columns are folded, or each
    value gets its own line."""
    console = Console()
    unlimited = console.options.update(max_width=10_000)  # in which no cell is folded
    names = [_text(name) for name in result.names]
    rows = [[Text(_text(value)) for value in row] for row in result.rows[:MAX_ROWS]]
    for headings in (names, [name.replace("_", "_\n") for name in names]):
        table = Table(box=None)
        for heading in headings:
            table.add_column(Text(heading))
        for row in rows:
            table.add_row(*row)
        if console.measure(table, options=unlimited).maximum <= console.width:
            break
    else:
        table = Table.grid(padding=(0, 2))
        for row in rows:
            for name, value in zip(names, row, strict=True):
                table.add_row(Text(name), value)
            table.add_row()
        table.columns[1].overflow = "fold"
    console.print(table)
    rest = len(result.rows) - MAX_ROWS
    if rest > 0:
        note(f"{rest:,} more rows: --csv or --json prints all")


def _plain(value: Any) -> Any:
    """Returns a value with bytes as hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else value


_FORMATS: dict[type, Callable[[Any], str]] = {
    float: lambda value: f"{value:.4g}",
    bytes: bytes.hex,
    list: lambda values: ", ".join(map(_text, values)),
    type(None): lambda value: "-",
}


def _text(value: Any) -> str:
    """Returns a value for a terminal, without control characters."""
    return printable(_FORMATS.get(type(value), str)(value))
