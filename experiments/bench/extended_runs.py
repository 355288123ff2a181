"""Compares extended runs with runs of full length.

For each seed, trains a run of half the length and extends it to the full length, and
trains another run with the full length from the start. Existing runs in the directory
are continued, so that a stopped command can be repeated.

    python experiments/bench/extended_runs.py runs/extended --minutes 10 --seeds 0 1 2
    python experiments/bench/extended_runs.py runs/extended --iterations 900

With iterations, the result does not depend on the load of the machine.
"""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import rich
import rich.table
import tyro

from azjax import training


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    directory: directory of the runs.
    game: a game with solved positions.
    minutes: the full length; the preset's settings suit it, and half of it for the
        extended run.
    iterations: the full length in iterations instead.
    seeds: seeds of the runs.
    quick: only check that everything runs, with small networks and few games.
    json: print JSON instead of the table.
    """

    directory: Annotated[Path, tyro.conf.Positional]
    game: str = "connect_four"
    minutes: float | None = None
    iterations: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    quick: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        """Checks the values."""
        if (self.minutes is None) == (self.iterations is None):
            raise ValueError("one of --minutes and --iterations must be given")
        if self.iterations is not None and self.iterations % 2:
            raise ValueError(f"iterations must be even: {self.iterations}")


# Overrides for `--quick`.
TINY = {
    "self_play": training.SelfPlayConfig(
        num_games=16, moves_per_chunk=8, num_simulations=(2,)
    ),
    "replay": training.ReplayConfig(capacity=2048, min_window=784, min_positions=64),
    "learner": training.LearnerConfig(batch_size=16, replay_ratio=0.5),
    "evaluation": training.EvaluationConfig(
        num_evaluations=1, num_positions=32, num_simulations=2, opponents=()
    ),
}


def main(settings: Settings) -> None:
    """Trains and compares."""
    rows = []
    for seed in settings.seeds:
        for kind in ("extended", "whole"):
            run = learn(settings, kind, seed)
            if not run.finished:
                return
            rows.append({"run": kind, "seed": seed, **(run.last or {})})
    if settings.json:
        print(json.dumps(rows))
        return
    table = rich.table.Table("run", "seed", "positions", "network alone", "with search")
    for row in rows:
        rates = (
            f"{row[name]:.1%} ({row[f'{name}_low']:.1%}-{row[f'{name}_high']:.1%})"
            for name in ("network_mistakes", "search_mistakes")
        )
        table.add_row(row["run"], str(row["seed"]), f"{row['positions']:,}", *rates)
    rich.print(table)


def learn(settings: Settings, kind: str, seed: int) -> training.Run:
    """Trains one run to its end, or continues it."""
    directory = settings.directory / f"{kind}_{seed}"
    unit = "minutes" if settings.iterations is None else "iterations"
    whole = settings.minutes or settings.iterations or 0
    half = whole / 2 if unit == "minutes" else whole // 2
    first = half if kind == "extended" else whole
    parts = TINY if settings.quick else {}
    if (directory / "checkpoints").exists():
        config = training.load_config(directory)
    else:
        config = training.preset(
            "auto",
            settings.game,
            seed=seed,
            run_dir=str(directory),
            **{unit: first},
            **parts,
        )
    run = training.train(config)
    if not run.finished or getattr(config, unit) == whole:
        return run
    return training.train(dataclasses.replace(config, **{unit: whole}))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
