"""Training runs for the page, read from untrusted files.

A run may have been copied from anywhere: the content of its files is checked here, and
never executed or used in a path.
"""

import functools
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from azjax import games
from azjax.checks import is_number
from azjax.games import Game, game_title
from azjax.play.server.messages import shown
from azjax.play.server.run_files import (
    is_inside,
    read_inside,
    stat_inside,
)
from azjax.players.schema import migrate
from azjax.players.serialization import Q_LEARNING, WEIGHTS_FILE
from azjax.training.plots import PLOT_FILE
from azjax.training.run_directory import CONFIG_FILE

KINDS = (None, Q_LEARNING)
MAX_LENGTH = 1e12  # of a run (minutes or iterations)
MAX_CONFIG_BYTES = 2**20
MAX_PLOT_BYTES = 2**22
KEPT_CONFIGS = 10_000
MAX_MESSAGE = 300  # characters of an error message

_log = logging.getLogger(__name__)


class RunInfo(NamedTuple):
    """A training run on disk.

    key: the name of its directory.
    directory: path.
    game: the trained game.
    kind: learning algorithm; None for AlphaZero.
    has_player: whether a player was saved.
    minutes: length of the run, None if it is not given in minutes.
    iterations: length of the run, None if it is not given in iterations.
    """

    key: str
    directory: Path
    game: Game
    kind: str | None
    has_player: bool
    minutes: float | None = None
    iterations: float | None = None

    @property
    def title(self) -> str:
        """The name shown on the page."""
        return f"{self.key}: {game_title(repr(self.game))}"


def find_runs(directory: Path) -> dict[str, RunInfo]:
    """Returns the runs in a directory by name.

    A run that cannot be read is omitted, and logged once for each version of its
    configuration.
    """
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return {}
    found = (_read_run(path) for path in paths)
    return {run.key: run for run in found if run is not None}


def plot_version(run: RunInfo) -> int | None:
    """Returns a number that changes with a run's plot, None without a plot."""
    try:
        status = stat_inside(run.directory, PLOT_FILE, MAX_PLOT_BYTES)
    except OSError:
        return None
    return status.st_mtime_ns // 1_000_000


def read_plot(run: RunInfo) -> bytes | None:
    """Returns the plot of a run as PNG, None without a plot."""
    try:
        return read_inside(run.directory, PLOT_FILE, MAX_PLOT_BYTES)
    except OSError:
        return None


def _read_run(path: Path) -> RunInfo | None:
    try:
        status = (path / CONFIG_FILE).lstat()
    except (OSError, ValueError):  # not a run
        return None
    run = _read_config(path, status.st_ino, status.st_mtime_ns, status.st_size)
    if run is None:
        return None
    names = (f"player/{CONFIG_FILE}", f"player/{WEIGHTS_FILE}")
    return run._replace(has_player=all(is_inside(path, name) for name in names))


@functools.lru_cache(KEPT_CONFIGS)
def _read_config(path: Path, *version: int) -> RunInfo | None:
    """Returns a run without `has_player`; logs and returns None if it cannot be read.

    Args:
        path: the run's directory.
        *version: numbers that change with its configuration.
    """
    del version
    try:
        return _parse_config(path)
    except Exception as error:  # any failure affects this run only
        _log.warning("the run %s is not shown: %s", shown(path.name), one_line(error))
        return None


def _parse_config(path: Path) -> RunInfo:
    """Reads a run's configuration.

    Raises:
        ValueError, TypeError, KeyError, RecursionError: the file is malformed.
        OSError: the file cannot be read.
    """
    if not path.name.isprintable():
        raise ValueError("its name has unprintable characters")
    config = json.loads(read_inside(path, CONFIG_FILE, MAX_CONFIG_BYTES))
    config = migrate(config)
    kind = config.get("kind")
    if kind not in KINDS:
        raise ValueError(f"unknown kind {shown(kind)}")
    if not isinstance(config["game"], str):
        raise ValueError(f"game must be a string: {shown(config['game'])}")
    game = games.make(config["game"])
    minutes, iterations = (
        _length(config.get(unit)) for unit in ("minutes", "iterations")
    )
    return RunInfo(path.name, path, game, kind, False, minutes, iterations)


def _length(value: Any) -> float | None:
    """Returns the length of a run, None if it is missing or out of range."""
    return value if is_number(value) and 0 < value < MAX_LENGTH else None


def one_line(error: Exception) -> str:
    """Returns an error message as one short line, as it may quote a file."""
    text = " ".join((str(error) or type(error).__name__).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."
