"""Runs all benchmarks on an accelerator within a time limit.

    python experiments/bench/accelerator.py --minutes 8 --out results

The parts, the most informative ones first:

    device      the devices that JAX finds, with their entry in `azjax.devices`
    search      tree search, azjax and mctx compared, on a GPU with and without CUDA
                graphs (see search.py)
    throughput  positions per second of self-play, of updates and of network evaluation,
                and the fraction of the peak that they reach
    games       random play, azjax and pgx compared (see games.py)
    learning    a Connect Four run from scratch, in the time that is left

Each part runs in its own process with a share of the time, so that a part that fails,
hangs or runs out of memory does not stop the others.
`accelerator.json` in the output folder is rewritten after each part; for a failed part
it contains the error and the results so far. The folder also contains the plots. A
table of the results ends the output. The exit status is 1 if a part failed.
"""

import dataclasses
import importlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import jax
import rich
import tyro
from harness import make_table
from matplotlib.figure import Figure
from network_share import Settings as NetworkSettings
from network_share import network_run

import azjax
from azjax import games
from azjax.arena.chart import INK, PALE_INK
from azjax.compilation_cache import enable_compilation_cache
from azjax.devices import chip_of
from azjax.games import Game
from azjax.networks import DenseTrunkConfig, Network, NetworkConfig, Variables
from azjax.players import first_network
from azjax.training import (
    EvaluationConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
    TrainConfig,
    make_algorithm,
    preset,
    train_iteration,
)
from azjax.training.analysis.forecast import Work, phases, work
from azjax.training.analysis.plots import NETWORK, SEARCH
from azjax.training.lanes import abstract_state
from azjax.training.run.metrics import read_metrics

FILE = "accelerator.json"
# Fractions of the time limit. Time that a part does not use goes to later parts.
SHARES = {
    "device": 0.04,
    "search": 0.3,
    "throughput": 0.25,
    "games": 0.16,
    "learning": 0.25,
}
LEAST_MINUTES = 0.3  # JAX starts in some seconds
MOST_ITERATIONS = 20  # limit for reaching the first update
SOFT = 0.75  # fraction of a part's time after which no new measurement starts
PartName = Literal["device", "search", "throughput", "games", "learning"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    minutes: time limit of all parts together.
    out: a new folder for the results.
    parts: the parts to run.
    quick: only check that everything runs, with few and small sizes.
    seconds: time limit of a single part, which runs in this process.
    """

    out: pathlib.Path
    minutes: float = 8.0
    parts: tuple[PartName, ...] = tuple(SHARES)  # pyright: ignore
    quick: bool = False
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Checks the values."""
        if not self.minutes >= LEAST_MINUTES:
            raise SystemExit(f"--minutes must be >= {LEAST_MINUTES}: {self.minutes}")


def write_json(path: pathlib.Path, values: Any) -> None:
    """Replaces a JSON file atomically."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(values, indent=2) + "\n")
    new.replace(path)


def run_part(settings: Settings, name: str, seconds: float) -> dict[str, Any]:
    """Returns the results of a part, and its error if it failed."""
    started = time.monotonic()
    command = [sys.executable, __file__, "--parts", name, "--out", settings.out]
    command += ["--seconds", seconds, *(["--quick"] if settings.quick else [])]
    log = settings.out / f"{name}.log"
    with log.open("w") as file:
        part = subprocess.Popen(
            [*map(str, command)], stdout=file, stderr=subprocess.STDOUT
        )
        try:
            status = part.wait(timeout=seconds)
            error = f"exit status {status}" if status else None
        except subprocess.TimeoutExpired:
            error = f"ended after its {seconds:.0f} seconds"
        finally:
            part.kill()
            part.wait()
    if error is not None:
        lines = log.read_text(errors="replace").strip().splitlines()
        error = ": ".join([error, *lines[-1:]])
    path = settings.out / f"{name}.json"
    values = json.loads(path.read_text()) if path.exists() else {}
    path.unlink(missing_ok=True)
    taken = time.monotonic() - started
    return {"error": error, "seconds": taken, **values}


def run_parts(settings: Settings) -> list[str]:
    """Runs all parts; returns the names of those that failed."""
    if settings.out.exists() and any(settings.out.iterdir()):
        raise SystemExit(f"{settings.out} is not empty: give another --out")
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"--out {settings.out}: {error.strerror}") from None
    end = time.monotonic() + 60 * settings.minutes
    result: dict[str, Any] = {"minutes": settings.minutes, "parts": {}}
    for place, name in enumerate(settings.parts):
        left = sum(SHARES[other] for other in settings.parts[place:])
        seconds = max(1.0, end - time.monotonic()) * SHARES[name] / left
        print(f"{name}: at most {seconds:.0f} seconds ...", flush=True)
        result["parts"][name] = run_part(settings, name, seconds)
        write_json(settings.out / FILE, result)
        if result["parts"][name].get("platform") == "cpu" and not settings.quick:
            raise SystemExit("JAX finds no accelerator, only a CPU; --quick tries it")
        if result["parts"][name]["error"]:
            print(f"{name} failed: {result['parts'][name]['error']}", flush=True)
    return [name for name, part in result["parts"].items() if part["error"]]


def rows_of(parts: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yields what was measured, the value, and what it compares with."""
    search, throughput, games, learning = (
        parts.get(name, {}) for name in ("search", "throughput", "games", "learning")
    )
    for row in search.get("results", []):
        yield (
            f"{row['algorithm']}, {row['batch']:,} games x {row['simulations']}, "
            f"{row['subject']}",
            f"{row['milliseconds_per_simulation']:.3f} ms a simulation",
            f"{row['times_as_fast_as_mctx']:.2f} times as fast as mctx, "
            f"{row['agreeing_games']:.1%} the same visits",
        )

    def of_peak(share: float | None) -> str:
        return "" if share is None else f"{share:.0%} of the peak"

    if "evaluations_per_second" in throughput:
        speed = throughput["evaluations_per_second"]
        share = of_peak(throughput["evaluation_share"])
        yield "network", f"{speed:,.0f} positions a second", share
    for row in throughput.get("results", []):
        for name, key in ("self-play", "self_play"), ("updates", "update"):
            yield (
                f"{name}, {row['simulations']} simulations",
                f"{row[f'{key}_positions']:,.0f} positions a second",
                of_peak(row[f"{key}_share"]),
            )
    for row in games.get("results", []):
        yield (
            f"random play, {row['game']}",
            f"{row['azjax_documented_steps_per_second']:,.0f} steps a second",
            f"{row['documented_ratio']:.1f} times as fast as pgx",
        )
    graded = [row for row in learning.get("metrics", []) if "search_mistakes" in row]
    for row in graded[-1:]:
        yield (
            "Connect Four from scratch",
            f"{row['search_mistakes']:.1%} mistakes with search",
            f"{row['positions']:,} positions in {row['seconds']:,.0f} s",
        )


class Subject(NamedTuple):
    """The run that is measured.

    config: its settings.
    game: its game.
    network: its structure.
    variables: the initial parameters.
    """

    config: TrainConfig
    game: Game
    network: Network
    variables: Variables


class Sheet:
    """The results of a part; every change is written to a file.

    path: the JSON file.
    seconds: the time limit of the part.
    """

    def __init__(self, path: pathlib.Path, seconds: float):
        self._path = path
        self._end = time.monotonic() + SOFT * seconds
        self.values: dict[str, Any] = {}

    def write(self, **values: Any) -> None:
        """Adds values."""
        self.values |= values
        write_json(self._path, self.values)

    def add(self, name: str, *rows: Any) -> None:
        """Adds rows to a list."""
        self.write(**{name: [*self.values.get(name, []), *rows]})

    def seconds_left(self) -> float:
        """Returns the time in which a new measurement can start."""
        return max(0.0, self._end - time.monotonic())

    def has_time(self) -> bool:
        """Returns whether a new measurement can start."""
        return self.seconds_left() > 0


def measure_device(settings: Settings, sheet: Sheet) -> None:
    """Records the devices that JAX finds."""
    device = jax.devices()[0]
    chip = chip_of(device)
    sheet.write(
        platform=device.platform,
        kind=device.device_kind,
        count=jax.device_count(),
        jax=jax.__version__,
        memory=device.memory_stats(),
        chip=chip and dataclasses.asdict(chip),
    )


def measure_games(settings: Settings, sheet: Sheet) -> None:
    """Measures random play."""
    bench = importlib.import_module("games")

    sizes = {
        **{"connect_four": 2**16, "go_9x9": 2**13, "chess": 2**11, "othello": 2**14},
        **{"hex": 2**14, "go_19x19": 2**11, "tic_tac_toe": 2**16},
    }
    for name, size in {"tic_tac_toe": 8}.items() if settings.quick else sizes.items():
        if not sheet.has_time():
            sheet.add("left_out", name)
            continue
        steps = 5 if settings.quick else bench.CASES[name].num_steps
        case = bench.CASES[name]._replace(batch_size=size, num_steps=steps)
        sheet.add("results", bench.measure(name, case, 1 if settings.quick else 3))
    draw_bars(
        settings.out / "games.png",
        "Random play, million steps a second",
        {
            library: {
                row["game"]: row[f"{library}_documented_steps_per_second"] / 1e6
                for row in sheet.values.get("results", [])
            }
            for library in ("azjax", "pgx")
        },
    )


def measure_search(settings: Settings, sheet: Sheet) -> None:
    """Measures tree search."""
    bench = importlib.import_module("search")

    cases: list[tuple[int, Any, int]] = [
        (batch, algorithm, simulations)
        for batch, simulations in ((4096, 32), (1024, 128), (16384, 32))
        for algorithm in ("gumbel", "puct")
    ]
    subjects = ("azjax", "mctx")
    repeats = 1 if settings.quick else 5
    options = bench.Settings(priors=("flat",), subjects=subjects, repeats=repeats)
    for case in [(4, "gumbel", 4)] if settings.quick else cases:
        if not sheet.has_time():
            sheet.add("left_out", case)
            continue
        try:
            sheet.add("results", *bench.measure(*case, options))
        except RuntimeError as error:  # of XLA, or different results
            sheet.add("errors", f"{case}: {error}")
    draw_bars(
        settings.out / "search.png",
        "Tree search with a trivial network, million simulations a second",
        {
            subject: {
                f"{row['algorithm']}, {row['batch']:,} games, "
                f"{row['simulations']}": row["simulations_per_second"] / 1e6
                for row in sheet.values.get("results", [])
                if row["subject"] == subject
            }
            for subject in dict.fromkeys(
                row["subject"] for row in sheet.values.get("results", [])
            )
        },
    )
    if "errors" in sheet.values:
        raise SystemExit("; ".join(sheet.values["errors"]))


def config_of(settings: Settings, **changes: Any) -> TrainConfig:
    """Returns the settings of the measured run.

    The default length is arbitrary.
    """
    if "minutes" not in changes:
        changes = {"iterations": 1} | changes
    if not settings.quick:
        return preset("accelerator", "connect_four", **changes)
    small = {
        "network": NetworkConfig(
            trunk=DenseTrunkConfig(width=16, num_blocks=1, stem_channels=8)
        ),
        "self_play": SelfPlayConfig(
            num_games=8, moves_per_chunk=4, num_simulations=(2,)
        ),
        "replay": ReplayConfig(capacity=288, min_window=280, min_positions=32),
        "learner": LearnerConfig(batch_size=16, replay_ratio=1.0),
        "evaluation": EvaluationConfig(
            num_evaluations=1, num_positions=32, num_simulations=2, num_games=2
        ),
    }
    return preset("cpu", "tic_tac_toe", **small | changes)


def measure_throughput(settings: Settings, sheet: Sheet) -> None:
    """Measures self-play, updates and network evaluation."""
    config = config_of(settings)
    replay = dataclasses.replace(config.replay, min_positions=0)
    config = dataclasses.replace(config, replay=replay)
    game = games.make(config.game)
    subject = Subject(config, game, *first_network(0, game, config.network))
    work = work_of(subject)
    measure_network(sheet, subject, work)
    counts = sorted(set(config.self_play.num_simulations))
    for simulations in dict.fromkeys((counts[-1], counts[0])):
        if not sheet.has_time():
            sheet.add("left_out", simulations)
            continue
        self_play = dataclasses.replace(
            config.self_play, num_simulations=(simulations,)
        )
        own = dataclasses.replace(config, self_play=self_play)
        played, updated = seconds_of_phases(subject._replace(config=own), sheet)
        drawn = own.updates_per_iteration * own.learner.batch_size
        flops = own.chunk_positions * (1 + simulations) * work.forward_flops
        sheet.add(
            "results",
            {
                "simulations": simulations,
                "self_play_positions": own.chunk_positions / played,
                "update_positions": drawn / updated,
                "positions": own.chunk_positions / (played + updated),
                "self_play_share": share_of_peak(own, played, flops),
                "update_share": share_of_peak(own, updated, drawn * work.update),
            },
        )
    draw_throughput(settings.out / "throughput.png", sheet.values.get("results", []))


def measure_network(sheet: Sheet, subject: Subject, work: Work) -> None:
    """Measures network evaluation on one device, with the batch size of self-play."""
    config, game, network, variables = subject
    times, options = 16, NetworkSettings(games=config.self_play.num_games)
    evaluate = network_run(game, network, variables, times, options)
    evaluate()
    seconds = statistics.median(seconds_of(evaluate) for _ in range(5))
    number = times * options.games
    flops = number * work.forward_flops
    share = share_of_peak(config, seconds, flops, num_devices=1)
    sheet.write(
        network_flops=work.forward_flops,
        evaluations_per_second=number / seconds,
        evaluation_share=share,
    )


def work_of(subject: Subject) -> Work:
    """Returns the floating-point operations of a run, without running it."""
    config, game, network, variables = subject
    algorithm = make_algorithm(config, game, network)
    state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
    found = phases(config, game, network, algorithm, state=state)
    gradient = next(phase for phase in found if phase.name == "gradient")
    return work(*subject, gradient=gradient)


def share_of_peak(
    config: TrainConfig, seconds: float, flops: float, *, num_devices: int | None = None
) -> float | None:
    """Returns the fraction of the peak speed reached; None if the device is not in the
    catalog.

    Args:
        config: training settings; their dtype selects the peak.
        seconds: the measured time.
        flops: floating-point operations of all devices.
        num_devices: devices used; all by default.
    """
    chip = chip_of(jax.devices()[0])
    if chip is None:
        return None
    peak = chip.peak(config.network.dtype) * (num_devices or jax.device_count())
    return flops / seconds / peak


def seconds_of_phases(subject: Subject, sheet: Sheet) -> tuple[float, float]:
    """Returns the median seconds of self-play and of the updates of an iteration.

    Measures up to five iterations while time remains, and at least one.
    """
    config, game, network, variables = subject
    algorithm = make_algorithm(config, game, network)
    state = algorithm.init(variables)
    times: list[float] = []
    rows: list[tuple[float, float]] = []
    number = num_updated = 0
    while not rows or (len(rows) < 5 and sheet.has_time()):
        times.clear()
        state, metrics = train_iteration(
            algorithm,
            config,
            state,
            0.5,
            lambda phase: times.append(time.perf_counter()),
        )
        jax.block_until_ready(state)
        times.append(time.perf_counter())
        number, num_updated = number + 1, num_updated + ("policy_loss" in metrics)
        if num_updated > 1:  # the first update includes compilation
            rows.append((times[1] - times[0], times[2] - times[1]))
        elif number > MOST_ITERATIONS:
            raise RuntimeError(f"no second update within {number} iterations")
    played, updated = zip(*rows, strict=True)
    return statistics.median(played), statistics.median(updated)


def measure_learning(settings: Settings, sheet: Sheet) -> None:
    """Trains on Connect Four for a short time."""
    run_dir = settings.out / "run"
    length = {"minutes": sheet.seconds_left() / 60}
    if settings.quick:
        length = {"iterations": 4}
    azjax.train(config_of(settings, run_dir=str(run_dir), **length))
    rows = list(read_metrics(run_dir / "metrics.jsonl"))
    sheet.write(metrics=rows)
    shutil.copyfile(run_dir / "plots" / "learning.png", settings.out / "learning.png")


def seconds_of(run: Callable[[], object]) -> float:
    """Returns the seconds of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def draw_bars(
    path: pathlib.Path, title: str, series: dict[str, dict[str, float]]
) -> None:
    """Draws a bar for each name of each series."""
    names = list(dict.fromkeys(name for bars in series.values() for name in bars))
    figure = Figure(figsize=(7, 1.4 + 0.5 * len(names)), dpi=150, layout="constrained")
    axes = figure.subplots()
    height = 0.8 / max(len(series), 1)
    colors = (NETWORK, SEARCH, PALE_INK, INK)
    for place, (label, bars) in enumerate(series.items()):
        rows = [
            names.index(name) + (place - (len(series) - 1) / 2) * height
            for name in bars
        ]
        drawn = axes.barh(
            rows, list(bars.values()), height, label=label, color=colors[place]
        )
        axes.bar_label(drawn, fmt="{:.3g}", padding=3, color=PALE_INK)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_title(title, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=max(len(series), 1), frameon=False)
    figure.savefig(path)


def draw_throughput(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    """Draws the throughput of self-play and of updates."""
    draw_bars(
        path,
        "Self-play and updates, thousand positions a second",
        {
            name: {f"{row['simulations']} simulations": row[key] / 1e3 for row in rows}
            for name, key in (
                ("self-play", "self_play_positions"),
                ("updates", "update_positions"),
                ("both", "positions"),
            )
        },
    )


MEASURES: dict[str, Callable[[Settings, Sheet], None]] = {
    "device": measure_device,
    "search": measure_search,
    "throughput": measure_throughput,
    "games": measure_games,
    "learning": measure_learning,
}


def main(settings: Settings) -> None:
    """Runs the benchmarks, writes the results, draws the plots and prints a table."""
    if settings.seconds is not None:
        (name,) = settings.parts
        enable_compilation_cache()
        sheet = Sheet(settings.out / f"{name}.json", settings.seconds)
        MEASURES[name](settings, sheet)
        return
    failed = run_parts(settings)
    parts = json.loads((settings.out / FILE).read_text())["parts"]
    kind = parts.get("device", {}).get("kind", "the accelerator")
    rows = [dict(zip("abc", row, strict=True)) for row in rows_of(parts)]
    columns = {"measured": "{a}", "result": "{b}", "": "{c}"}
    rich.print(make_table(rows, columns, f"azjax on {kind}"))
    print(f"wrote {settings.out / FILE}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; see the logs in {settings.out}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
