"""Training runs for the page, read from files in any state.

A run may have been copied from somewhere: what its files say is checked here, and
nothing of it is executed or becomes a part of a path.
"""

import functools
import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

from azjax import games
from azjax.checks import is_number
from azjax.games import Game
from azjax.play.server.describing import game_title
from azjax.play.server.messages import shown
from azjax.play.server.run_files import (
    is_inside,
    read_inside,
    stat_inside,
)
from azjax.players.q_serialization import KIND
from azjax.players.schema import migrate
from azjax.players.serialization import WEIGHTS_FILE
from azjax.training.plots import PLOT_FILE
from azjax.training.run_directory import CONFIG_FILE

KINDS = (None, KIND)
MAX_LENGTH = 1e12  # of a run, minutes or iterations
MAX_CONFIG_BYTES = 2**20
MAX_PLOT_BYTES = 2**24
KEPT_CONFIGS = 10_000
MAX_MESSAGE = 300  # letters of an error

_log = logging.getLogger(__name__)


class Run(NamedTuple):
    """A run's directory.

    key: its name.
    directory: where it is.
    game: what is learnt there.
    kind: None for AlphaZero, else the way of learning.
    has_player: whether somebody can be played against yet.
    minutes: that it lasts, if it is measured in them.
    iterations: that it lasts, if it is measured in them.
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
        """What it is called for people."""
        return f"{self.key}: {game_title(repr(self.game))}"


def find_runs(directory: Path) -> dict[str, Run]:
    """Returns the runs in a directory by their names.

    What is no run is left out; a run that cannot be read is left out too, and logged
    once for each version of its settings.
    """
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return {}
    found = (_read_run(path) for path in paths)
    return {run.key: run for run in found if run is not None}


def plot_stamp(run: Run) -> int | None:
    """Returns another number for each newer plot of a run, None if there is none."""
    try:
        about = stat_inside(run.directory, PLOT_FILE, MAX_PLOT_BYTES)
    except OSError:
        return None
    return about.st_mtime_ns // 1_000_000


def read_plot(run: Run) -> bytes | None:
    """Returns the newest plot of a run, None if there is none yet."""
    try:
        return read_inside(run.directory, PLOT_FILE, MAX_PLOT_BYTES)
    except OSError:
        return None


def _read_run(path: Path) -> Run | None:
    try:
        about = (path / CONFIG_FILE).lstat()
    except (OSError, ValueError):  # there is none
        return None
    run = _read_config(path, about.st_ino, about.st_mtime_ns, about.st_size)
    if run is None:
        return None
    names = (f"player/{CONFIG_FILE}", f"player/{WEIGHTS_FILE}")
    return run._replace(has_player=all(is_inside(path, name) for name in names))


@functools.lru_cache(KEPT_CONFIGS)
def _read_config(path: Path, *version: int) -> Run | None:
    """Returns a run, but for its player; None if it cannot be read, which is logged.

    Args:
        path: the run's directory.
        *version: numbers that change when its settings do.
    """
    del version
    try:
        return _parse_config(path)
    except Exception as error:  # any failure affects this run only
        _log.warning("the run %s is not shown: %s", shown(path.name), one_line(error))
        return None


def _parse_config(path: Path) -> Run:
    """Reads a run's settings.

    Raises:
        ValueError, TypeError, KeyError, RecursionError: they are damaged.
        OSError: they cannot be read.
    """
    if not path.name.isprintable():
        raise ValueError("its name has letters that cannot be printed")
    config = json.loads(read_inside(path, CONFIG_FILE, MAX_CONFIG_BYTES))
    config = migrate(config)
    kind = config.get("kind")
    if kind not in KINDS:
        raise ValueError(f"unknown kind {shown(kind)}")
    if not isinstance(config["game"], str):
        raise ValueError(f"game must be a text: {shown(config['game'])}")
    game = games.make(config["game"])
    minutes, iterations = (
        _length(config.get(unit)) for unit in ("minutes", "iterations")
    )
    return Run(path.name, path, game, kind, False, minutes, iterations)


def _length(value: Any) -> float | None:
    """Returns how long a run lasts, None if that is not said."""
    return value if is_number(value) and 0 < value < MAX_LENGTH else None


def one_line(error: Exception) -> str:
    """Returns what an error says, in one short line: it may hold a file's text."""
    text = " ".join((str(error) or type(error).__name__).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."
