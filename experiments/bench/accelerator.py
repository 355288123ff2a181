"""Runs all benchmarks on an accelerator within a time limit.

    python experiments/bench/accelerator.py --minutes 8 --out results

The parts:

    device      the devices that JAX finds, with their entry in `azjax.devices`
    games       random play, azjax and pgx compared (see games.py)
    search      tree search, azjax and mctx compared (see search.py)
    forecast    the forecast of `azjax plan` for the preset's Connect Four run
    throughput  positions per second of self-play, of updates and of network evaluation,
                and the fraction of the peak that they reach
    learning    a short Connect Four run

Each part runs in its own process (`accelerator_parts.py`) with a share of the time, so
that a part that fails, hangs or runs out of memory does not stop the others.
`accelerator.json` in the output folder is rewritten after each part; for a failed part
it contains the error and the results so far. The folder also contains the plots. The
exit status is 1 if a part failed.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
import time
from typing import Any, Literal

import tyro

FILE = "accelerator.json"
# Fractions of the time limit. Time that a part does not use goes to later parts.
SHARES = {
    "device": 0.04,
    "games": 0.15,
    "search": 0.2,
    "forecast": 0.16,
    "throughput": 0.2,
    "learning": 0.25,
}
PartName = Literal["device", "games", "search", "forecast", "throughput", "learning"]


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


def main(settings: Settings) -> None:
    """Runs the benchmarks, writes the results and draws the plots."""
    failed = run_parts(settings)
    print(f"wrote {settings.out / FILE}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; see the logs in {settings.out}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
