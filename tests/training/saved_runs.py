"""Directories of runs with metrics, without training."""

import json

from azjax.training import TrainConfig
from azjax.training.run.directory import open_run_directory
from azjax.training.run.metrics import METRICS_FILE


def counters(iteration):
    return {
        "iteration": iteration,
        "seconds": 30.0 * iteration,
        "games": 40 * iteration,
        "positions": 1000 * iteration,
        "updates": 5 * iteration,
    }


def iteration_row(iteration):
    return {"kind": "iteration", **counters(iteration), "positions_per_second": 30.0}


def evaluation_row(iteration, *, mistakes=None, lost=None, **scores):
    """An evaluation; the intervals end 0.05 below and above the rates, or at 0."""
    row = {"kind": "evaluation", **counters(iteration), "scores": {}}
    if mistakes is not None:
        row |= with_interval("network_mistakes", mistakes)
    if lost is not None:
        row |= with_interval("network_win_probability_lost", lost)
    for name, score in scores.items():
        row["scores"][name] = with_interval("score", score)
    return row


def with_interval(name, rate):
    low = max(rate - 0.05, 0.0)
    return {name: rate, f"{name}_low": low, f"{name}_high": rate + 0.05}


def save_run(
    directory, rows=(), *, config_class=TrainConfig, optimizer=None, **changes
):
    """Writes the settings and the metrics of a run. Returns its directory as text."""
    settings = {"game": "tic_tac_toe", "iterations": 4, **changes}
    config = config_class(**settings, run_dir=str(directory))
    with open_run_directory(config, optimizer):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / METRICS_FILE).write_text(lines)
    return str(directory)
