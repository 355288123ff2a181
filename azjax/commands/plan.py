"""`azjax plan`: forecasts whether a run fits into a device, and its speed there."""

import dataclasses
import functools
import json
import math
from collections.abc import Sequence

import jax
import tyro
from rich.console import Console
from rich.table import Column, Table

from azjax.commands.custom_modules import ModulesOption, read_custom_modules
from azjax.commands.parsing import parse_known
from azjax.commands.tables import JsonOption
from azjax.commands.train import parse_train_config
from azjax.devices import estimates, parse_device, use_all_cores
from azjax.program import note
from azjax.training import preset
from azjax.training.analysis.forecast import Forecast, forecast


def plan_command(
    game: tyro.conf.Positional[str],
    /,
    *,
    device: str | None = None,
    modules: ModulesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast memory and speed of a run on a device, which may be absent; `azjax plan
    GAME --help` lists the settings of the run.

    Args:
        game: a game that `azjax games` lists.
        device: a TPU slice, for example v5e:2x4, v4:2x2x2 or v6e:2x4, or NVIDIA GPUs:
            h100, h100:8, h200, a100, l4 or t4; by default the available devices.
    """


def plan_with_settings(game: str, args: Sequence[str], *, prog: str) -> None:
    """Plans a run of a game with options of `azjax plan` and settings as in `azjax
    train`; see `train_with_settings`."""
    own, settings = parse_known(PlanOptions, args, prog=prog)
    if own.device is not None:
        parse_device(own.device)  # refused before anything is imported for it
        jax.config.update("jax_platforms", "cpu")  # no accelerator is needed
    use_all_cores()
    modules = read_custom_modules(own.modules)  # first, as it may register a trunk
    config = parse_train_config(
        game,
        settings,
        prog=prog,
        settings=functools.partial(
            preset, "auto" if own.device is None else "accelerator", game
        ),
        purpose=(
            f"Compile a run of {game} for --device, which may be absent (v5e:2x4, "
            "h100:8 and others; by default the available devices), and print memory, "
            "work and an estimated speed; --json prints one JSON object. The settings "
            "are those of `azjax train`: "
        ),
    )
    result = forecast(
        config,
        own.device,
        modules=modules,
        enter=lambda phase: note(f"compiling {phase} ..."),
    )
    if own.as_json:
        print(json.dumps(result.to_json()))
    else:
        print_forecast(Console(), result)
    result.check()


@dataclasses.dataclass(frozen=True)
class PlanOptions:
    """Arguments besides the settings of the run."""

    device: str | None = None
    modules: ModulesOption = None
    as_json: JsonOption = False


def print_forecast(console: Console, result: Forecast) -> None:
    """Prints memory, work and speed of a run, with the arithmetic."""
    chip, count = result.chip, result.num_chips
    title = f"{result.config.game} on {result.device}, {count} device{'s'[: count > 1]}"
    if chip is not None and result.peak is not None:
        title += f" of {_short(result.peak)}FLOP/s in {result.config.network.dtype}"
        title += f" at {_short(chip.clock)}Hz" if chip.clock else ""
    console.print(f"{title}\n", highlight=False, soft_wrap=True)
    names = ("arguments", "results", "temporaries", "code", "compiled in")
    columns = (Column(name, justify="right") for name in names)
    table = Table("bytes of each chip", *columns, box=None)
    for phase in result.phases:
        sizes = (phase.arguments, phase.outputs, phase.temporaries, phase.code)
        table.add_row(phase.name, *map(_short, sizes), f"{phase.seconds:.0f} s")
    console.print(table)
    console.print()
    numbers = result.config.self_play.num_simulations
    longest = numbers.index(max(numbers))
    counted = ("kernels",)  # the fields of `Counts` that matter on the device
    if chip is not None and chip.gpu is not None:
        counted = ("kernels", "predicates")
    elif chip is not None:
        counted = ("cycles", "gathers", "scatters", "custom_calls")
    columns = (
        Column(name.replace("_", " "), justify="right") for name in ("runs", *counted)
    )
    table = Table("per chunk of self-play", *columns, "between chips", box=None)
    for phase in result.phases:
        moved = ", ".join(f"{n} {name}" for name, n in phase.collectives.items())
        found = phase.counts[longest]._asdict()
        cells = (f"{(phase.runs or 1) * found[name]:,}" for name in counted)
        table.add_row(phase.name, str(phase.runs or "-"), *cells, moved or "none")
    console.print(table)
    parts = (f"{name} {_short(size)}B" for name, size in result.state.items())
    needed, phase = result.needed
    usable = "" if result.usable is None else f" of {_short(result.usable)}B"
    seconds = sum(one.seconds for one in result.phases)
    lines = [
        "loops of a length that depends on data count once, except searches"
        f"\n\ncompiled in {seconds:.0f} s in total",
        f"always on a chip: {', '.join(parts)}; of self-play's temporaries about "
        f"{_short(result.trees)}B are trees",
        f"peak per chip: {_short(needed)}B{usable}, with all code, in {phase}",
    ]
    work = result.work
    lines.append("\nnetwork, one position:")
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
    for line in (*lines, *_speed(result)):
        console.print(line, highlight=False, soft_wrap=True)


def _speed(result: Forecast) -> list[str]:
    """Returns the lines about the estimated speed."""
    chip, positions = result.chip, result.config.chunk_positions
    if chip is None or not result.speeds:
        unknown = "clock" if chip is not None else "peak speed"
        return [f"\nno estimate of the speed: this device's {unknown} is unknown"]
    lines = [f"\nestimated seconds of a chunk of {positions:,} positions:"]
    for stage, speed in enumerate(result.speeds):
        parts = result.seconds(stage) or {}
        simulations = result.config.self_play.num_simulations[stage]
        total = " + ".join(f"{name} {one:.3g}" for name, one in parts.items())
        lines.append(f"  {simulations} simulations: {total}; {speed:,.0f} positions/s")
    mean = len(result.speeds) / sum(1 / speed for speed in result.speeds)
    lines = list(dict.fromkeys(lines))
    lines.append(f"  mean of the run: {mean:,.0f} positions/s")
    if chip.gpu is None:
        return [*lines, "cycles / clock; gathers, scatters and others have no estimate"]
    fitted = (estimates.KERNEL, estimates.PREDICATE, estimates.SIMULATION)
    kernel, predicate, simulation = (f"{1e6 * one:g} us a" for one in fitted)
    return [
        *lines,
        f"{kernel} kernel, {predicate} predicate and {simulation} simulation, fitted "
        "to four searches of 4,096 games on an H200; networks do not reach the peak",
    ]


def _short(number: float) -> str:
    """Formats a number with three digits and a prefix of its unit: `1.25 G`."""
    for power, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        factor = 10.0**power
        if number >= factor:
            return f"{number / factor:.3g} {prefix}"
    return f"{number:.3g} "
