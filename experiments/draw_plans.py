"""Makes the table of what every game and preset needs on some accelerators.

    python experiments/draw_plans.py --cells plans --file docs/plan.md

Every cell is what `azjax plan GAME --preset PRESET --device DEVICE --json` prints, in a
file of its own in the folder `--cells`; those that are there are not computed again, so
that the script goes on where it was stopped. A cell takes minutes: it is compiled by
the compiler of the device, which need not be there (for TPUs: the extra `tpu`). Cells
that are not there are written as "not computed".
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
from azjax.devices import parse_device
from azjax.training import TrainConfig

Preset = Literal["accelerator", "cpu"]
DEVICES = ("v5e:2x4", "v4:2x2x2", "v5e:4x4", "v6e:2x4")
PRESETS: tuple[Preset, ...] = ("accelerator", "cpu")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is drawn.

    cells: folder of the cells.
    file: where the table is written.
    games: rows, together with the presets; all games by default.
    presets: see above.
    devices: columns.
    compute: whether cells that are missing are computed.
    """

    cells: Path = Path("plans")
    file: Path = Path("docs/plan.md")
    games: tuple[str, ...] = tuple(games.available())
    presets: tuple[Preset, ...] = PRESETS
    devices: tuple[str, ...] = DEVICES
    compute: bool = True


def cell_path(cells: Path, game: str, preset: str, device: str) -> Path:
    """Returns where a cell is kept."""
    name = f"{game}-{preset}-{device}".replace(":", "_").replace(",", "_")
    return cells / f"{name}.json"


def compute(path: Path, game: str, preset: str, device: str) -> None:
    """Computes a cell.

    Raises:
        RuntimeError: `azjax plan` failed, other than by refusing the run.
    """
    command = [sys.executable, "-m", "azjax", "plan", game, "--preset", preset]
    _, shape = parse_device(device)
    chips = math.prod(int(size) for size in shape.split("x"))
    if chips > TrainConfig.num_lanes:
        command += ["--num-lanes", str(chips)]
    command += ["--device", device, "--json"]
    started, used = time.monotonic(), processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = processor_seconds() - used
    message = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode not in (0, 2) or "needs JAX's" in message:
        raise RuntimeError(f"{' '.join(command[1:])}: {message}")
    found = json.loads(done.stdout) if done.stdout else {}
    found |= {
        "refusal": message if done.returncode else None,
        "processor_seconds": used,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(found, indent=2) + "\n")
    new.replace(path)
    print(f"{game}, {preset}, {device}: {time.monotonic() - started:.0f} s", flush=True)


def processor_seconds() -> float:
    """Returns the processor time of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cell_text(found: dict[str, Any] | None) -> str:
    """Returns a cell for people."""
    if found is None:
        return "not computed"
    if not found.get("fits", False):
        return "refused"
    speeds = found["positions_per_second"]
    mean = len(speeds) / sum(1 / speed for speed in speeds)
    needed = found["needed_bytes"] / 2**30
    return f"{mean:,.0f} / {needed:.2f} / {found['processor_seconds']:.0f}"


def usable(rows: list[list[dict[str, Any] | None]], column: int) -> str:
    """Returns the heading's note of how much memory the chips of a column have."""
    for row in rows:
        found = row[column]
        if found is not None and "usable_bytes" in found:
            chips = f"{found['chips']} chip{'s'[: found['chips'] > 1]}"
            return f", {chips} of {found['usable_bytes'] / 2**30:.2f} GiB"
    return ""


def table(settings: Settings) -> str:
    """Returns the page with the table of the cells that are there."""
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
        f"- {name.replace(' | ', ', ')}, {device}: {found['refusal']}"
        for name, row in zip(names, cells, strict=True)
        for device, found in zip(settings.devices, row, strict=True)
        if found is not None and found["refusal"]
    ]
    text = "\n".join([*lines, "", *refusals]).rstrip()
    return f"""# What a run needs, and how fast it can be

`azjax plan GAME --preset PRESET --device DEVICE` compiles a run for a device that need
not be there. Each cell: positions a second at 40% of the peak, over the whole run / GiB
that each chip needs at most / seconds of processor time that the command took, nearly
all of them to compile, on the machine that made this table. The reasons of refused runs
stand below. Nothing was measured on these devices. Made by
`python experiments/draw_plans.py`.

{text}
"""


def read(path: Path) -> dict[str, Any] | None:
    """Returns a cell, None if it is not there."""
    return json.loads(path.read_text()) if path.exists() else None


def main(settings: Settings) -> None:
    """Computes the cells that are missing and writes the table after each."""
    settings.file.parent.mkdir(parents=True, exist_ok=True)
    # The columns of accelerators' own preset first.
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
