"""Games on disk: Parquet files and SQL over them (DuckDB, extra `data`)."""

from azjax.data.database import QUERIES, Database, opened
from azjax.data.files import (
    GAMES,
    GameFileWriter,
    WholeGames,
    delete_oldest,
    drop_after,
    game_files,
    games_of_file,
    read_games,
    stored_files,
    stored_game,
)
from azjax.data.importing import Imported, import_games
from azjax.data.rows import Rows, file_schema, state_bytes, unpack_states

__all__ = [
    "GAMES",
    "QUERIES",
    "Database",
    "GameFileWriter",
    "Imported",
    "Rows",
    "WholeGames",
    "delete_oldest",
    "drop_after",
    "file_schema",
    "game_files",
    "games_of_file",
    "import_games",
    "opened",
    "read_games",
    "state_bytes",
    "stored_files",
    "stored_game",
    "unpack_states",
]
