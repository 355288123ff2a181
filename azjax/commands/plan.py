"""`azjax plan`: forecasts whether a run fits into a device, and its speed there."""

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Column, Table

from azjax.commands.common import note
from azjax.commands.parsing import parse, split_game
from azjax.commands.parts import read_parts
from azjax.commands.train import parse_train_config
from azjax.devices import parse_device
from azjax.networks import Parts
from azjax.training import TrainConfig, preset
from azjax.training.forecast import (
    LAUNCH_SECONDS,
    UTILIZATION,
    Forecast,
    forecast,
)


def plan_command(
    game: tyro.conf.Positional[str],
    /,
    *,
    device: str | None = None,
    parts: str | None = None,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Forecast memory and speed of a run on a device, which may be absent; `azjax plan
    GAME --help` lists the settings of the run.

    Args:
        game: a game that `azjax games` lists.
        device: a TPU slice, for example v5e:2x4, v4:2x2x2 or v6e:2x4, or NVIDIA GPUs:
            h100, h100:8, h200, a100, l4 or t4; by default the available devices.
        parts: MODULE:NAME, the azjax.networks.Parts of a network with custom modules.
        as_json: print one JSON object.
    """
    own = _Own(device, parts, as_json)
    _check_device(own)
    _plan(_default(game, device), own, read_parts(parts))


def plan_with_settings(args: Sequence[str], prog: str) -> None:
    """Plans a run with settings.

    Args:
        args: the game, options of `azjax plan`, and settings as in `azjax train`.
        prog: the program's name with that of the command.

    Raises:
        ValueError: the first argument is an option, or the run cannot be planned.
    """
    game, settings = split_game(args, prog)
    prog = f"{prog} {game}"
    own, settings = parse(
        _Own, settings, prog=prog, return_unknown_args=True, add_help=False
    )
    _check_device(own)
    parts = read_parts(own.parts)  # first, as it may register a trunk
    config = parse_train_config(
        game,
        settings,
        prog=prog,
        settings=lambda **changes: _default(game, own.device, **changes),
        purpose=(
            f"Compile a run of {game} for --device, which may be absent (v5e:2x4, "
            "h100:8 and others; by default the available devices), and print memory, "
            "work and speed; --json prints one JSON object. The settings are those of "
            "`azjax train`: "
        ),
    )
    _plan(config, own, parts)


@dataclasses.dataclass(frozen=True)
class _Own:
    """Arguments besides the settings of the run."""

    device: str | None = None
    parts: str | None = None
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False


def _check_device(own: _Own) -> None:
    """Checks the device's name, before anything is imported for it."""
    if own.device is not None:
        parse_device(own.device)
        # The process needs no accelerator.
        jax.config.update("jax_platforms", "cpu")


def _default(game: str, device: str | None, **changes: object) -> TrainConfig:
    """Returns the default settings; for a given device, those of the accelerator
    preset."""
    return preset("auto" if device is None else "accelerator", game, **changes)


def _plan(config: TrainConfig, own: _Own, parts: Parts | None) -> None:
    result = forecast(
        config,
        own.device,
        parts=parts,
        enter=lambda phase: note(f"compiling {phase} ..."),
    )
    if own.as_json:
        print(json.dumps(result.to_json()))
    else:
        print_forecast(Console(), result)
    result.check()


def print_forecast(console: Console, result: Forecast) -> None:
    """Prints memory, work, traffic and speed of a run, with the arithmetic."""
    chip, count = result.chip, result.num_chips
    title = f"{result.config.game} on {result.device}, {count} device{'s'[: count > 1]}"
    if chip is not None and result.peak is not None:
        title += (
            f" of {_short(result.peak)}FLOP/s in {result.config.network.dtype}, "
            f"{_short(chip.bandwidth)}B/s"
        )
    console.print(f"{title}\n", highlight=False, soft_wrap=True)
    names = ("arguments", "results", "temporaries", "code", "compiled in")
    columns = (Column(name, justify="right") for name in names)
    table = Table("bytes of each chip", *columns, box=None)
    for phase in result.phases:
        sizes = (phase.arguments, phase.outputs, phase.temporaries, phase.code)
        table.add_row(phase.name, *map(_short, sizes), f"{phase.seconds:.0f} s")
    console.print(table)
    console.print()
    columns = (Column(name, justify="right") for name in ("runs", "bytes moved"))
    table = Table("per chunk of self-play", *columns, "between chips", box=None)
    for phase in result.phases:
        moved = ", ".join(f"{n} {name}" for name, n in phase.collectives.items())
        runs = str(phase.runs or "-")
        table.add_row(phase.name, runs, _short(phase.traffic), moved or "none")
    console.print(table)
    parts = (f"{name} {_short(size)}B" for name, size in result.state.items())
    needed, phase = result.needed
    usable = "" if result.usable is None else f" of {_short(result.usable)}B"
    seconds = sum(one.seconds for one in result.phases)
    memory = [
        f"\ncompiled in {seconds:.0f} s in total",
        f"always on a chip: {', '.join(parts)}; of self-play's temporaries about "
        f"{_short(result.trees)}B are trees",
        f"peak per chip: {_short(needed)}B{usable}, with all code, in {phase}",
    ]
    for line in (*memory, *_work(result), *_speed(result), *_launches(result)):
        console.print(line, highlight=False, soft_wrap=True)


def _work(result: Forecast) -> list[str]:
    work = result.work
    lines = ["\nnetwork, one position:"]
    for product, number in work.forward.items():
        shapes = " by ".join("x".join(map(str, one)) for one in product[1:3])
        lines.append(
            f"  {number} * {product.kind} of {shapes} "
            f"(2 * {math.prod(product.output):,} numbers * {product.terms:,} terms) "
            f"= {_short(number * product.flops)}FLOP"
        )
    lines.append(f"  total {_short(work.forward_flops)}FLOP")
    lines.append(
        f"updates, one position: {work.replay_ratio:g} samples * "
        f"{_short(work.update)}FLOP = {_short(work.replay_ratio * work.update)}FLOP"
    )
    lines.append(
        f"memory traffic per position, loops of unknown length once: "
        f"{_short(result.traffic)}B"
    )
    return lines


def _speed(result: Forecast) -> list[str]:
    if result.chip is None or result.peak is None:
        return ["\nthe peak speed of this device is unknown"]
    work, count = result.work, result.num_chips
    lines = [f"\nat {UTILIZATION:.0%} of the peak:"]
    stages = zip(
        result.config.self_play.num_simulations,
        work.evaluations,
        result.speeds,
        strict=True,
    )
    for simulations, number, speed in dict.fromkeys(stages):
        lines.append(
            f"  {simulations} simulations: {number:g} evaluations * "
            f"{_short(work.forward_flops)}FLOP + updates = "
            f"{_short(work.flops(number))}FLOP; {UTILIZATION:g} * {count} * "
            f"{_short(result.peak)}FLOP/s / {_short(work.flops(number))}FLOP = "
            f"{speed:,.0f} positions/s"
        )
    mean = len(result.speeds) / sum(1 / speed for speed in result.speeds)
    lines.append(f"  mean of the run: {mean:,.0f} positions/s")
    total = count * result.chip.bandwidth
    lines.append(
        f"memory bandwidth allows {count} * {_short(result.chip.bandwidth)}B/s / "
        f"{_short(result.traffic)}B = {total / result.traffic:,.0f} positions/s"
    )
    return lines


def _launches(result: Forecast) -> list[str]:
    launches = result.phases[0].launches
    if result.chip is None or result.chip.gpu is None or launches is None:
        return []
    portions = " + ".join(map(str, launches.portion))
    speed = result.config.chunk_positions / result.launch_seconds
    return [
        f"\nkernels of a simulation: network {launches.network}, descent "
        f"{launches.descent} + {launches.level} a level, backup {launches.backup} + "
        f"{portions} a portion, bookkeeping {launches.bookkeeping}; at "
        f"{1e6 * LAUNCH_SECONDS:g} us each, one level and one portion, launching "
        f"allows {speed:,.0f} positions/s",
    ]


def _short(number: float) -> str:
    """Formats a number with three digits and a prefix of its unit: `1.25 G`."""
    for power, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        factor = 10.0**power
        if number >= factor:
            return f"{number / factor:.3g} {prefix}"
    return f"{number:.3g} "
