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

Each part runs in its own process (`accelerator_parts.py`) with a share of the time, so
that a part that fails, hangs or runs out of memory does not stop the others.
`accelerator.json` in the output folder is rewritten after each part; for a failed part
it contains the error and the results so far. The folder also contains the plots. A
table of the results ends the output. The exit status is 1 if a part failed.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Literal

import rich
import rich.table
import tyro

FILE = "accelerator.json"
# Fractions of the time limit. Time that a part does not use goes to later parts.
SHARES = {
    "device": 0.04,
    "search": 0.3,
    "throughput": 0.25,
    "games": 0.16,
    "learning": 0.25,
}
PartName = Literal["device", "search", "throughput", "games", "learning"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    minutes: time limit of all parts together.
    out: a new folder for the results.
    parts: the parts to run.
    quick: only check that everything runs, with few and small sizes.
    """

    out: pathlib.Path
    minutes: float = 8.0
    parts: tuple[PartName, ...] = tuple(SHARES)  # pyright: ignore
    quick: bool = False

    def __post_init__(self) -> None:
        """Checks the values."""
        if not self.minutes > 0:
            raise ValueError(f"minutes must be > 0: {self.minutes}")


def write_json(path: pathlib.Path, values: Any) -> None:
    """Replaces a JSON file atomically."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(values, indent=2) + "\n")
    new.replace(path)


def run_part(settings: Settings, name: str, seconds: float) -> dict[str, Any]:
    """Returns the results of a part, and its error if it failed."""
    started = time.monotonic()
    script = pathlib.Path(__file__).with_name("accelerator_parts.py")
    command = [sys.executable, script, name, "--out", settings.out]
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
    settings.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * settings.minutes
    result: dict[str, Any] = {"minutes": settings.minutes, "parts": {}}
    for place, name in enumerate(settings.parts):
        left = sum(SHARES[other] for other in settings.parts[place:])
        seconds = max(1.0, end - time.monotonic()) * SHARES[name] / left
        print(f"{name}: at most {seconds:.0f} seconds ...", flush=True)
        result["parts"][name] = run_part(settings, name, seconds)
        write_json(settings.out / FILE, result)
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


def main(settings: Settings) -> None:
    """Runs the benchmarks, writes the results, draws the plots and prints a table."""
    failed = run_parts(settings)
    parts = json.loads((settings.out / FILE).read_text())["parts"]
    kind = parts.get("device", {}).get("kind", "the accelerator")
    table = rich.table.Table("measured", "result", "", title=f"azjax on {kind}")
    for row in rows_of(parts):
        table.add_row(*row)
    rich.print(table)
    print(f"wrote {settings.out / FILE}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; see the logs in {settings.out}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
