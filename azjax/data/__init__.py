"""The games of a run on disk: Parquet files and SQL over them (extra `data`)."""

from azjax.data.files import GAMES, delete_oldest, drop_after, game_files
from azjax.data.reader import WholeGames, read_games, stored_files
from azjax.data.rows import Rows, file_schema, state_bytes, unpack_states

__all__ = [
    "GAMES",
    "Rows",
    "WholeGames",
    "delete_oldest",
    "drop_after",
    "file_schema",
    "game_files",
    "read_games",
    "state_bytes",
    "stored_files",
    "unpack_states",
]
