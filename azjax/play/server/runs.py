"""Training runs as visitors see them, whatever state their files are in."""

import json
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

from azjax import games
from azjax.games import Game
from azjax.play.server.describing import game_title
from azjax.training.metrics import METRICS_FILE, SCORE, SCORE_ENDS, parse_rows
from azjax.training.plots import PLOT_FILE
from azjax.training.run_directory import CONFIG_FILE

TAIL = 256 * 1024  # bytes of the metrics that are read
ACTIVE_SECONDS = 300.0  # after the last row, a run counts as ended

# What is shown of the newest row that has it, and how it is called.
LABELS = {
    "iteration": "Iteration",
    "positions": "Positions",
    "games": "Games",
    "positions_per_second": "Positions a second",
    "simulations": "Simulations a move",
    "policy_loss": "Policy loss",
    "value_loss": "Value loss",
    "loss": "Loss",
    "network_mistakes": "Mistakes of the network",
    "search_mistakes": "Mistakes with search",
}


class Run(NamedTuple):
    """A run's directory.

    key: its name.
    directory: where it is.
    game: what is learnt there.
    kind: None for AlphaZero, else the way of learning.
    has_player: whether somebody can be played against yet.
    """

    key: str
    directory: Path
    game: Game
    kind: str | None
    has_player: bool

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


def describe_run(run: Run) -> dict[str, Any]:
    """Returns what there is to tell of a run now."""
    rows, changed = _newest_rows(run.directory / METRICS_FILE)
    merged = {key: value for row in rows for key, value in row.items()}
    scores = {
        key: f"Points against {key.removeprefix(SCORE)}"
        for key in merged
        if key.startswith(SCORE) and not key.endswith(SCORE_ENDS)
    }
    latest = {
        label: merged[key]
        for key, label in (LABELS | scores).items()
        if _is_number(merged.get(key))
    }
    iteration = merged.get("iteration")
    return {
        "title": run.title,
        "iteration": iteration if isinstance(iteration, int) else None,
        "is_training": time.time() - changed < ACTIVE_SECONDS,
        "latest": latest,
    }


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
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    has_player = (path / "player" / CONFIG_FILE).is_file()
    return Run(path.name, path, game, kind, has_player)


def _newest_rows(path: Path) -> tuple[list[dict[str, Any]], float]:
    """Returns the last rows of a metrics file and when it was written (seconds)."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            content = file.read()
        return parse_rows(content), path.stat().st_mtime
    except OSError:
        return [], -math.inf


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )
