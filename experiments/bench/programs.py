"""Counts operations in the compiled program of a search, for any device.

The subjects of `search.py`, azjax's policy and mctx's on the same game with the same
trivial network, are compiled for one TPU or GPU. The compiler needs no device:
`pip install "jax[tpu]"` for TPUs, `pip install "jax[cuda12]"` for NVIDIA GPUs. Nothing
is executed. The counts are taken from the program text, with each loop body once:

    gathers, scatters   in the whole program
    bytes               accessed, estimated by the compiler; only for TPUs
    temp memory         in addition to arguments and results
    kernels             launched by one run of each loop body: fusions, copies and the
                        like. Descent is the first loop in the loop over simulations
                        (per level), backup the last (per level, or chunk of nodes),
                        values the loops between them; bookkeeping is the rest of a
                        simulation, including network and rules.
    compile time        on this machine

    python experiments/bench/programs.py --device v5e:2x2
    python experiments/bench/programs.py --device h100 --engine azjax
"""

import dataclasses
import json
import os
import time
from collections import Counter
from typing import Literal, get_args

# Set before JAX starts: no device is initialized.
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import rich
import rich.table
import tyro
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from search import Algorithm, make_search, make_subjects, random_moves, trivial_network

from azjax.devices import (
    Instruction,
    Program,
    compile_for,
    mesh_of,
    read_program,
    topology_mesh,
)

Engine = Literal["azjax", "mctx"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    device: the target: the first device of a topology such as `v5e:2x2` or `h100`;
        `cpu` is this machine.
    engine: azjax, mctx or both.
    algorithm: search algorithm.
    batch: parallel games.
    simulations: simulations of a search.
    json: print JSON instead of the table.
    """

    device: str = "v5e:2x2"
    engine: tuple[Engine, ...] = get_args(Engine)
    algorithm: Algorithm = "gumbel"
    batch: int = 4096
    simulations: int = 32
    json: bool = False


def mesh_for(device: str) -> Mesh:
    """Returns a mesh with one device of the target."""
    if device == "cpu":
        return mesh_of(jax.devices()[:1])
    return mesh_of(list(topology_mesh(device).devices[:1]))


def measure(engine: Engine, settings: Settings) -> dict:
    """Returns the counts of one engine's program."""
    mesh = mesh_for(settings.device)
    sharding = NamedSharding(mesh, PartitionSpec())
    subject = make_subjects()[engine]
    arguments = jax.eval_shape(
        lambda: (
            trivial_network("flat"),
            jax.random.key(0),
            subject.rules.start(random_moves(settings.batch)),
        )
    )
    arguments = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        arguments,
    )
    search = make_search(subject, settings.algorithm, settings.simulations)
    start = time.perf_counter()
    compiled = compile_for(mesh, jax.jit(search), *arguments)
    seconds = time.perf_counter() - start
    program = read_program(compiled.as_text() or "")
    counts = Counter(found.opcode for found in program.instructions.values())
    costs, memory = compiled.cost_analysis() or {}, compiled.memory_analysis()
    return {
        "device": settings.device,
        "engine": engine,
        "batch": settings.batch,
        "simulations": settings.simulations,
        "gathers": counts["gather"],
        "scatters": counts["scatter"],
        "bytes_accessed": costs.get("bytes accessed"),
        "temp_bytes": memory.temp_size_in_bytes if memory else None,
        "kernels": kernels_by_part(program),
        "compile_seconds": seconds,
    }


def kernels_by_part(program: Program) -> dict[str, int]:
    """Returns the kernel launches of one run of each loop body, by part."""

    def inside(loop: Instruction) -> list[Instruction]:
        return list(program.loops(loop.body))

    def launches(loop: Instruction) -> int:
        return len(list(program.kernels(loop.body)))

    nested = [loop for loop in program.loops(program.entry) if inside(loop)]
    simulation = max(nested, key=launches)
    descent, *values, backup = map(launches, inside(simulation))
    return {
        "bookkeeping": launches(simulation),
        "descent": descent,
        "values": sum(values),
        "backup": backup,
    }


def make_table(results: list[dict]) -> rich.table.Table:
    """Returns the counts as a table, with a column for each engine."""
    first = results[0]
    table = rich.table.Table(
        "counted",
        *(rich.table.Column(row["engine"], justify="right") for row in results),
        title=f"A search of {first['batch']:,} games with {first['simulations']} "
        f"simulations, compiled for {first['device']}",
    )
    table.add_row("gathers", *(str(row["gathers"]) for row in results))
    table.add_row("scatters", *(str(row["scatters"]) for row in results))
    if first["bytes_accessed"] is not None:
        accessed = (f"{row['bytes_accessed'] / 1e9:.2f} GB" for row in results)
        table.add_row("bytes accessed, bodies once", *accessed)
    if first["temp_bytes"] is not None:
        memory = (f"{row['temp_bytes'] / 1e6:.0f} MB" for row in results)
        table.add_row("temp memory", *memory)
    for part in ("bookkeeping", "descent", "values", "backup"):
        counts = (str(row["kernels"][part]) for row in results)
        table.add_row(f"kernels: {part}", *counts)
    times = (f"{row['compile_seconds']:.0f} s" for row in results)
    table.add_row("compile time", *times)
    return table


def main(settings: Settings) -> None:
    """Compiles and prints."""
    results = [measure(engine, settings) for engine in settings.engine]
    if settings.json:
        print(json.dumps(results, indent=2))
    else:
        rich.print(make_table(results))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
