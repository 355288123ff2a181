"""Compares variants of a run: trains each with several seeds, and judges all of them.

    python experiments/ablate.py connect_four --minutes 10 --seeds 0 1 2 \\
        --variants "default=" "wide=--network.trunk.width 512" "z=--learner.td-lambda 1"

A variant is `NAME=OPTIONS`, the options those of `azjax train`; the first one is the
baseline. Options that begin with `--variation VARIATION` train a variation of
`experiments/variations.py`. The runs follow each other, seed by seed, so that changes
of the machine affect all variants alike. A stopped script continues with the same
command: finished runs are not trained again, and `azjax train` continues the last one.

A variant is judged by its mistakes in solved positions, without and with search, where
the game has some (in games with chance, by the win probability that its moves lose), by
how many more it makes than the baseline with the same seed, and by its matches with
search against that baseline. The intervals (95%, Student's t) are over the seeds; with
fewer than three they say little. Writes `ablation.md` and `ablation.png` into the
folder after each run.
"""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy.stats
import tyro
from matplotlib.figure import Figure

from azjax import arena, games, players
from azjax.files import replace_file
from azjax.training.evaluation import OPENING_MOVES
from azjax.training.loop import named_players

sys.path.insert(0, os.fspath(Path(__file__).resolve().parent))
from variations import VARIATIONS

RESULT = "result.json"
SCORE = "score against the first"
LOST = "win probability lost"
MORE = "more "  # head of the names of differences to the first
VARIATION = "--variation"
SCRIPT = Path(__file__).with_name("variations.py")
MINUTES = 10.0
DOT, PALE = "#0072b2", "#66737f"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    game: game spec.
    variants: see above.
    minutes: training time of each run; 10 by default.
    iterations: of each run, in place of minutes.
    seeds: of the runs of each variant.
    out: folder of runs and results.
    simulations: network evaluations per move of the search.
    num_games: per match, an even number.
    """

    game: tyro.conf.Positional[str]
    variants: tuple[str, ...]
    minutes: float | None = None
    iterations: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    out: Path = Path("ablation")
    simulations: int = 64
    num_games: int = 200

    def __post_init__(self):
        if len(self.options) < len(self.variants) or not self.variants:
            raise ValueError(f"variants must have different names: {self.variants}")
        if len(set(self.seeds)) < len(self.seeds) or not self.seeds:
            raise ValueError(f"seeds must be different numbers: {self.seeds}")
        if self.minutes is not None and self.iterations is not None:
            raise ValueError(
                f"give minutes or iterations: {self.minutes} and {self.iterations}"
            )

    @property
    def length(self) -> tuple[str, float]:
        """Returns unit and number of the length of a run."""
        if self.iterations is not None:
            return "iterations", self.iterations
        return "minutes", MINUTES if self.minutes is None else self.minutes

    @property
    def options(self) -> dict[str, list[str]]:
        """Returns the options of each variant by its name."""
        return dict(map(parse_variant, self.variants))

    def of_result(self, name: str) -> dict[str, Any]:
        """Returns the settings on which the result of a variant depends."""
        baseline = next(iter(self.options.values()))
        return {
            "game": self.game,
            self.length[0]: self.length[1],
            "options": self.options[name],
            "baseline": baseline,
            "simulations": self.simulations,
            "num_games": self.num_games,
        }


def parse_variant(text: str) -> tuple[str, list[str]]:
    """Parses `NAME=OPTIONS`.

    Raises:
        ValueError: the text has another form.
    """
    name, separator, options = text.partition("=")
    if not separator or not name or name != Path(name).name or name.startswith("."):
        raise ValueError(f"a variant must be NAME=OPTIONS, without slashes: {text!r}")
    words = shlex.split(options)
    given = [place for place, word in enumerate(words) if word.startswith(VARIATION)]
    if given and (given != [0] or words[1:2] == [] or words[0] != VARIATION):
        raise ValueError(f"{VARIATION} must be the first option, with a name: {text!r}")
    if given and words[1] not in VARIATIONS:
        raise ValueError(
            f"{VARIATION} must name one of {', '.join(VARIATIONS)}: {words[1]!r}"
        )
    return name, words


def main(settings: Settings) -> None:
    """Trains and judges the missing runs; writes table and plot after each."""
    baseline = next(iter(settings.options))
    for seed in settings.seeds:
        for name, options in settings.options.items():
            run = settings.out / name / str(seed)
            if read_result(settings, name, seed) is None:
                train(settings, run, seed, options)
                first = read_result(settings, baseline, seed)
                numbers = judge(settings, run, settings.out / baseline / str(seed))
                numbers |= differences(numbers, first or {})
                result = {"settings": settings.of_result(name), "numbers": numbers}
                replace_file(run / RESULT, json.dumps(result, indent=2).encode())
            write_results(settings)
    print((settings.out / "ablation.md").read_text())


def train(settings: Settings, run: Path, seed: int, options: list[str]) -> None:
    """Trains a run, or continues it.

    Raises:
        SystemExit: it failed or was stopped.
    """
    command = [sys.executable, "-m", "azjax", "train"]
    if options[:1] == [VARIATION]:
        _, variation, *options = options
        command = [sys.executable, os.fspath(SCRIPT), variation]
    unit, number = settings.length
    command += [settings.game, f"--{unit}", str(number), "--seed", str(seed)]
    command += ["--run-dir", str(run), *options]
    print(shlex.join(command[1:]), flush=True)
    status = subprocess.run(command, check=False).returncode
    if status:
        raise SystemExit(status)


def judge(settings: Settings, run: Path, baseline: Path) -> dict[str, float]:
    """Returns the results of a run by the name of the measure."""
    game = games.make(settings.game)
    trained, first = (players.load_run(str(path), game) for path in (run, baseline))
    solved, result = arena.shipped(game), {}
    if solved is not None:
        for name, player in named_players(trained, settings.simulations).items():
            graded = arena.grade(player, solved, jax.random.key(0))
            if game.num_outcomes:
                result[f"{LOST}, {name}"] = graded.mean_lost
            else:
                result[f"mistakes, {name}"] = graded.mean
    if run != baseline:
        openings_key, match_key = jax.random.split(jax.random.key(0))
        number = settings.num_games // 2
        openings = arena.suite(game, openings_key, number, OPENING_MOVES)
        match = arena.play_openings(
            game,
            trained.player(settings.simulations),
            first.player(settings.simulations),
            openings,
            match_key,
        )
        result[SCORE] = match.total.score
    return result


def differences(numbers: dict[str, float], first: dict[str, float]) -> dict[str, float]:
    """Returns how much higher the grades of a variant are than those of the first with
    its seed, by the name of the measure."""
    return {
        f"{MORE}{name}": value - first[name]
        for name, value in numbers.items()
        if name in first
    }


def read_result(settings: Settings, name: str, seed: int) -> dict[str, float] | None:
    """Returns the results of a run by the name of the measure; None if it has none.

    Raises:
        SystemExit: the result is one of other settings.
    """
    path = settings.out / name / str(seed) / RESULT
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    if result["settings"] != settings.of_result(name):
        raise SystemExit(
            f"{path} is the result of other settings, {result['settings']}: give "
            "those, or another --out"
        )
    return result["numbers"]


def read_results(settings: Settings) -> dict[str, dict[str, list[float]]]:
    """Returns the numbers of the finished runs by measure and variant."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in settings.options:
        for seed in settings.seeds:
            numbers = read_result(settings, name, seed) or {}
            for measure, value in numbers.items():
                found.setdefault(measure, {}).setdefault(name, []).append(value)
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95% interval of the mean of independent runs; NaN for one run."""
    error = scipy.stats.sem(values) if len(values) > 1 else np.nan
    reach = scipy.stats.t.ppf(0.975, max(1, len(values) - 1)) * error
    return float(np.mean(values) - reach), float(np.mean(values) + reach)


def write_results(settings: Settings) -> None:
    """Writes `ablation.md` and `ablation.png`."""
    found, (unit, number) = read_results(settings), settings.length
    lines = [
        f"{settings.game}, {number:g} {unit} a run, search with "
        f"{settings.simulations} simulations. Mean of the seeds (95% interval; runs).",
        "",
        f"| variant | {' | '.join(found)} | options |",
        f"|---|{'---|' * len(found)}---|",
    ]
    for name, options in settings.options.items():
        cells = [
            cell_text(
                numbers.get(name, []),
                is_signed=measure.startswith(MORE),
                digits=2 if LOST in measure else 1,
            )
            for measure, numbers in found.items()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | `{shlex.join(options)}` |")
    (settings.out / "ablation.md").write_text("\n".join(lines) + "\n")
    draw(settings, found).savefig(settings.out / "ablation.png", format="png")


def cell_text(values: Sequence[float], *, is_signed: bool, digits: int) -> str:
    """Returns the text of a cell of the table, of fractions or of their differences."""
    if not values:
        return "-"
    low, high = 100 * bounds(values, is_signed=is_signed)
    mean = f"{100 * np.mean(values):{'+' if is_signed else ''}.{digits}f}%"
    middle = " to " if is_signed else "-"
    reach = f"{low:.{digits}f}{middle}{high:.{digits}f}; " if len(values) > 1 else ""
    return f"{mean} ({reach}{len(values)})"


def bounds(values: Sequence[float], *, is_signed: bool) -> np.ndarray:
    """Returns the ends of the interval that are possible."""
    return np.clip(interval(values), -1 if is_signed else 0, 1)


def draw(settings: Settings, found: dict[str, dict[str, list[float]]]) -> Figure:
    """Draws each measure: a dot for each run, a bar for the mean's interval."""
    names = list(settings.options)
    figure = Figure((3.6 * max(1, len(found)) + 1.5, 1.2 + 0.45 * len(names)), dpi=150)
    figure.set_layout_engine("constrained")
    for place, (measure, numbers) in enumerate(found.items()):
        axes = figure.add_subplot(1, len(found), place + 1)
        for row, name in enumerate(names):
            values = numbers.get(name, [])
            if len(values) > 1:
                ends = 100 * bounds(values, is_signed=measure.startswith(MORE))
                axes.hlines(row, *ends, color=PALE, linewidth=5, alpha=0.4)
            shown = [100 * value for value in values]
            axes.plot(shown, [row] * len(values), "o", color=DOT, markersize=5)
        axes.set_title(f"{measure} (%)", fontsize=10)
        axes.set_yticks(range(len(names)), names if place == 0 else [""] * len(names))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.3)
    return figure


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
