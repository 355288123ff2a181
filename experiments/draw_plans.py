"""Makes the table of forecasts for every game on some accelerators.

    python experiments/draw_plans.py --cells plans --file docs/plan.md

Every cell is the output of `azjax plan GAME --preset PRESET --device DEVICE --json`, in
a file in the folder `--cells`. Existing files are not computed again, so that a stopped
script can continue. A cell takes minutes of compilation for the device, which may be
absent (with the extras `tpu` and `cuda`). Missing cells are written as "not computed".
"""

import dataclasses
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import tyro

from azjax import games
from azjax.devices import estimates, parse_device
from azjax.training import TrainConfig

Preset = Literal["accelerator", "cpu"]
DEVICES = ("v5e:2x4", "h100:8")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    cells: folder of the cells.
    file: the table to write.
    games: rows, together with the presets; all games by default.
    presets: rows, together with the games.
    devices: columns.
    compute: whether to compute missing cells.
    """

    cells: Path = Path("plans")
    file: Path = Path("docs/plan.md")
    games: tuple[str, ...] = tuple(games.available())
    presets: tuple[Preset, ...] = ("accelerator",)
    devices: tuple[str, ...] = DEVICES
    compute: bool = True


def cell_path(cells: Path, game: str, preset: str, device: str) -> Path:
    """Returns the file of a cell."""
    name = f"{game}-{preset}-{device}".replace(":", "_").replace(",", "_")
    return cells / f"{name}.json"


def compute(path: Path, game: str, preset: str, device: str) -> None:
    """Computes a cell.

    Raises:
        RuntimeError: `azjax plan` failed, except by rejecting the run.
    """
    command = [sys.executable, "-m", "azjax", "plan", game, "--preset", preset]
    _, shape = parse_device(device)
    chips = math.prod(map(int, shape.split("x")))
    if chips > TrainConfig.num_lanes:
        command += ["--num-lanes", str(chips)]
    command += ["--device", device, "--json"]
    started, used = time.monotonic(), processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = processor_seconds() - used
    message = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode not in (0, 2) or "needs JAX's" in message:
        raise RuntimeError(f"{' '.join(command[1:])}: {message}")
    cell = json.loads(done.stdout) if done.stdout else {}
    cell |= {
        "refusal": message if done.returncode else None,
        "processor_seconds": used,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(cell, indent=2) + "\n")
    new.replace(path)
    print(f"{game}, {preset}, {device}: {time.monotonic() - started:.0f} s", flush=True)


def processor_seconds() -> float:
    """Returns the processor time of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cell_text(cell: dict[str, Any] | None) -> str:
    """Returns the text of a cell."""
    if cell is None:
        return "not computed"
    if not cell.get("fits", False):
        return "refused"
    speeds = cell["positions_per_second"]
    # Without a clock a speed is not estimated.
    mean = f"{len(speeds) / sum(1 / speed for speed in speeds):,.0f}" if speeds else "-"
    needed = cell["needed_bytes"] / 2**30
    return f"{mean} / {needed:.2f} / {cell['processor_seconds']:.0f}"


def usable(rows: list[list[dict[str, Any] | None]], column: int) -> str:
    """Returns the number of chips and their memory, for the heading of a column."""
    for row in rows:
        cell = row[column]
        if cell is not None and "usable_bytes" in cell:
            chips = f"{cell['chips']} chip{'s'[: cell['chips'] > 1]}"
            return f", {chips} of {cell['usable_bytes'] / 2**30:.2f} GiB"
    return ""


def table(settings: Settings) -> str:
    """Returns the page with the table."""
    cells = []
    for game in settings.games:
        for preset in settings.presets:
            paths = [
                cell_path(settings.cells, game, preset, device)
                for device in settings.devices
            ]
            cells.append([read(path) for path in paths])
    names = [f"{game} | {kind}" for game in settings.games for kind in settings.presets]
    headings = [
        f"{device}{usable(cells, column)}"
        for column, device in enumerate(settings.devices)
    ]
    lines = [
        f"| game | preset | {' | '.join(headings)} |",
        f"|---|---|{'---|' * len(headings)}",
    ]
    for name, row in zip(names, cells, strict=True):
        lines.append(f"| {name} | {' | '.join(map(cell_text, row))} |")
    refusals = [
        f"- {name.replace(' | ', ', ')}, {device}: {cell['refusal']}"
        for name, row in zip(names, cells, strict=True)
        for device, cell in zip(settings.devices, row, strict=True)
        if cell is not None and cell["refusal"]
    ]
    text = "\n".join([*lines, "", *refusals]).rstrip()
    fitted = (estimates.KERNEL, estimates.PREDICATE, estimates.SIMULATION)
    kernel, predicate, simulation = (f"{1e6 * one:g} us" for one in fitted)
    return f"""# Memory and speed of runs

`azjax plan GAME --preset PRESET --device DEVICE` compiles a run for a device, which may
be absent. Each cell: estimated positions per second, averaged over the run / largest
memory per chip in GiB / processor time of the command in seconds, mostly for
compilation, on the machine that made this table. Nothing was measured on these devices;
reasons for rejected runs follow the table. Made by `python experiments/draw_plans.py`.

On a TPU the estimate is the cycles that its compiler writes into the programs, divided
by the clock. The compiler has no estimate for gathers, scatters, custom calls,
collectives and copies between memories, so that their time is missing; the command
counts them. No TPU has confirmed the estimates.

On a GPU it is {kernel} a kernel, {predicate} a predicate (a decision of the host) and
{simulation} a simulation, which fits four searches of 4,096 games measured on one
H200 within 1%, and the matrix products at the peak. A network reaches
[about 40% of the peak there](results.md#on-a-gpu), and copies between GPUs are left
out, so that most runs are slower than that; other cards, games and numbers of games
differ.

On both, loops whose length depends on the data count once, except searches.

{text}
"""


def read(path: Path) -> dict[str, Any] | None:
    """Reads a cell; None if it is missing."""
    return json.loads(path.read_text()) if path.exists() else None


def main(settings: Settings) -> None:
    """Computes the missing cells and writes the table after each."""
    settings.file.parent.mkdir(parents=True, exist_ok=True)
    # The columns of the accelerator preset first.
    for preset in settings.presets:
        for device in settings.devices:
            for game in settings.games:
                path = cell_path(settings.cells, game, preset, device)
                if settings.compute and not path.exists():
                    compute(path, game, preset, device)
                    settings.file.write_text(table(settings))
    settings.file.write_text(table(settings))
    print(f"wrote {settings.file}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
