"""Training runs as visitors see them, whatever state their files are in."""

import json
from pathlib import Path
from typing import NamedTuple

from azjax import games
from azjax.games import Game
from azjax.play.server.describing import game_title
from azjax.training.plots import PLOT_FILE
from azjax.training.q_config import DEFAULT_MINUTES
from azjax.training.run_directory import CONFIG_FILE


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
    """Returns the runs in a directory by their names; what is none is left out."""
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return {}
    found = (_read_run(path) for path in paths)
    return {run.key: run for run in found if run is not None}


def plot_stamp(run: Run) -> int | None:
    """Returns another number for each newer plot of a run, None if there is none."""
    try:
        return (run.directory / PLOT_FILE).stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def read_plot(run: Run) -> bytes | None:
    """Returns the newest plot of a run, None if there is none yet."""
    try:
        return (run.directory / PLOT_FILE).read_bytes()
    except OSError:
        return None


def _read_run(path: Path) -> Run | None:
    try:
        config = json.loads((path / CONFIG_FILE).read_text())
        game = games.make(config["game"])
        kind = config.get("kind")
        minutes, iterations = (
            _length(config.get(unit)) for unit in ("minutes", "iterations")
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if kind is not None and not iterations:
        minutes = minutes or DEFAULT_MINUTES
    has_player = (path / "player" / CONFIG_FILE).is_file()
    return Run(path.name, path, game, kind, has_player, minutes, iterations)


def _length(value: object) -> float | None:
    """Returns how long a run lasts, None if that is not said."""
    return value if isinstance(value, int | float) and value > 0 else None
