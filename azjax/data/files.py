"""The files of a run's games: names, deletion of files that are not wanted any more.

A file holds the positions of one or several iterations, as played by one process:
`00000001-00000012-0.parquet` holds those of iterations 1 to 12 of process 0.
"""

import re
from pathlib import Path
from typing import NamedTuple

from azjax.remote import Directory, store_errors

GAMES = "games"  # directory of the files in a run directory

_NAME = re.compile(r"(\d{8,})-(\d{8,})-(\d+)\.parquet")
_UNFINISHED = re.compile(rf"\.{_NAME.pattern}\.\d+")


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
    """Returns the files of positions in a directory, by iteration, for a reader, who
    would miss positions of Parquet files with other names.

    Raises:
        ValueError: a Parquet file has another name.
        OSError: the directory cannot be read.
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
