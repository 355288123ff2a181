"""Counts what compiled programs execute, for a TPU or GPU that need not be present.

The programs, with Connect Four:

    azjax, mctx   a search of azjax or mctx, on the same game with the same trivial
                  network: the subjects of `search.py`
    self-play     the search of a move with the network of the accelerator preset
    update        an update of that preset: gradient and optimizer
    games         no search, but a table of all games: a step and the legal actions of
                  `--batch` games, with azjax and, where it has the game, with pgx

The compiler needs no device: `pip install "jax[tpu]"` for TPUs, `pip install
"jax[cuda12]"` for NVIDIA GPUs. Nothing is executed there. Loops whose length depends on
the data run on this machine first, with the same random positions, to count their
iterations; a search with the trivial network, also for self-play. Counted are:

    kernels     fusions, copies and the like
    predicates  decisions that a GPU leaves to the host: tests of loops without a known
                length, and conditionals; in a CUDA graph the device decides
    cycles      of a TPU, estimated by its compiler, without those of gathers, scatters,
                custom calls and copies between memories, which are only counted

    python experiments/bench/programs.py --device v5e:2x2
    python experiments/bench/programs.py --device h100 --programs self-play update
    python experiments/bench/programs.py --device v5e:2x2 --programs games

`--check` compiles the programs of `programs.json` and fails if one of them executes
more than recorded there: for a GPU, in a simulation, a predicate more, a kernel more
outside of CUDA graphs, or 10% more kernels; for a TPU a gather or scatter more, or 10%
more cycles.
`--record` writes the new numbers after an intended change.
"""

import dataclasses
import functools
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any, Literal

# Set before JAX starts: no device is initialized.
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import pgx
import rich
import rich.table
import tyro
from games import CASES, cheap_sample
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from search import Algorithm, make_search, make_subjects, random_moves, trivial_network
from trips import Trips, lengths_of, measure_trips

from azjax import games
from azjax.devices import (
    CHIPS,
    Program,
    compile_program,
    counts,
    jit_network,
    mesh_of,
    topology_mesh,
    tracing_for,
)
from azjax.games.core import initial_states, select
from azjax.networks import cast_variables
from azjax.players.model import evaluate, is_illegal, make_recurrent_fn, make_root
from azjax.training import make_algorithm, preset
from azjax.training.analysis.forecast import phases
from azjax.training.lanes import abstract_state
from azjax.training.territory import training_network

Name = Literal["azjax", "mctx", "self-play", "update", "games"]
GAME = "connect_four"
RECORDED = pathlib.Path(__file__).with_name("programs.json")
TOLERANCE = 1.1
COMPILERS = (
    *("jax", "jaxlib", "libtpu", "jax-cuda12-pjrt", "jax-cuda12-plugin"),
    *("nvidia-cuda-nvcc-cu12", "nvidia-cuda-runtime-cu12"),
)
NUM_MOVES = 40  # of random games, in which iterations are counted
# Rows of the games' table: the game for azjax, and that of pgx.
ROWS = {
    **{case.azjax: case.pgx for case in CASES.values()},
    **{"breakthrough": None, "gomoku": None},
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options.

    device: the target: the first device of a topology such as `v5e:2x2` or `h100`;
        `cpu` is this machine.
    programs: what to compile.
    algorithm: search algorithm.
    batch: parallel games.
    simulations: simulations of a search.
    games: rows of the table of games.
    libraries: its columns; pgx's 19x19 Go compiles for more than 20 minutes.
    json: print JSON instead of tables.
    check: compare with the recorded numbers instead.
    record: write new numbers to `programs.json`.
    """

    device: str = "v5e:2x2"
    programs: tuple[Name, ...] = ("azjax", "mctx")
    algorithm: Algorithm = "gumbel"
    batch: int = 4096
    simulations: int = 32
    games: tuple[str, ...] = tuple(ROWS)
    libraries: tuple[Literal["azjax", "pgx"], ...] = ("azjax", "pgx")
    json: bool = False
    check: bool = False
    record: bool = False


def mesh_for(device: str) -> Mesh:
    """Returns a mesh with one device of the target."""
    if device == "cpu":
        return mesh_of(jax.devices()[:1])
    return mesh_of(list(topology_mesh(device).devices[:1]))


def placed(mesh: Mesh, tree: Any) -> Any:
    """Returns abstract arrays on the device of a mesh."""
    sharding = NamedSharding(mesh, PartitionSpec())
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        tree,
    )


def search_of(engine: str, settings: Settings) -> tuple[Callable, Callable]:
    """Returns a search with the trivial network, and a function that returns its
    arguments."""
    subject = make_subjects()[engine]

    def arguments():
        states = subject.rules.start(random_moves(settings.batch))
        return trivial_network("flat"), jax.random.key(0), states

    return make_search(subject, settings.algorithm, settings.simulations), arguments


def self_play_search(settings: Settings, mesh: Mesh) -> tuple[Callable, Any]:
    """Returns the search of a move with the accelerator preset's network, and its
    abstract arguments."""
    config, game = preset("accelerator", GAME, iterations=1), games.make(GAME)
    network, variables, _ = training_network(config, game, None)
    key, states = jax.eval_shape(
        lambda: (jax.random.key(0), initial_states(game, settings.batch))
    )

    def move(variables, rng_key, states):
        variables = cast_variables(network, variables)
        outputs = evaluate(game, network, variables, states)
        root: Any = make_root(game, *outputs, states)
        output = config.search.policy(explores=True)(
            variables,
            rng_key,
            root,
            make_recurrent_fn(game, network),
            settings.simulations,
            invalid_actions=is_illegal(root.prior_logits),
            max_depth=game.max_moves,
        )
        return output.action, output.action_weights

    return move, placed(mesh, (variables, key, states))


def update_phases(mesh: Mesh) -> Iterator[tuple]:
    """Yields name, function and arguments of the parts of the preset's update."""
    config, game = preset("accelerator", GAME, iterations=1), games.make(GAME)
    network, variables, modules = training_network(config, game, None)
    devices = list(mesh.devices.flat)
    algorithm = make_algorithm(config, game, network, modules=modules, devices=devices)
    state = abstract_state(lambda: algorithm.init(variables), algorithm.shardings)
    for phase in phases(config, game, network, algorithm, state=state):
        if phase.name in ("gradient", "update"):
            yield phase.name, phase.function, *phase.arguments


@functools.cache
def search_trips(engine: str, settings: Settings, platform: str) -> Trips:
    """Measures the loops of a search with the trivial network."""
    function, make = search_of(engine, settings)
    with tracing_for(platform):
        return measure_trips(function, *jax.jit(make)())


def measure(name: Name, settings: Settings) -> list[dict]:
    """Returns the counts of a program, in a list because an update has two."""
    mesh = mesh_for(settings.device)
    common = {"device": settings.device}
    platform = mesh.devices.flat[0].platform
    with tracing_for(platform):
        if name == "update":
            return [
                {"program": part, **common, **report(mesh, *of_part, trips=dict)}
                for part, *of_part in update_phases(mesh)
            ]
        engine = "mctx" if name == "mctx" else "azjax"
        if name == "self-play":
            function, arguments = self_play_search(settings, mesh)
        else:
            function, make = search_of(engine, settings)
            arguments = placed(mesh, jax.eval_shape(make))
        of_search = dataclasses.replace(settings, programs=(), device="")
        found = report(
            mesh,
            jit_network(function),
            *arguments,
            trips=lambda: search_trips(engine, of_search, platform),
        )
        sizes = {"batch": settings.batch, "simulations": settings.simulations}
        return [{"program": name, **common, **sizes, **found}]


def report(
    mesh: Mesh, function: Callable, *arguments: Any, trips: Callable[[], Trips]
) -> dict:
    """Compiles a function; returns what it executes.

    Args:
        mesh: the device.
        function: jitted.
        *arguments: abstract.
        trips: measures the loops of data-dependent length, if there are any.
    """
    start = time.perf_counter()
    compiled, program = compile_program(mesh, function, *arguments)
    seconds = time.perf_counter() - start
    lengths = lengths_of(program, trips)
    memory = compiled.memory_analysis()
    return {
        "compile_seconds": seconds,
        "temp_bytes": memory.temp_size_in_bytes if memory else None,
        "parts": list(parts_of(program, program.entry, lengths)),
        "total": counted(program, lengths),
        "longest_loop": counted(longest_loop(program, lengths), lengths),
    }


def counted(program: Program, lengths: dict[str, float]) -> dict[str, float]:
    """Returns what a program executes; for a GPU also the kernels outside of CUDA
    graphs, which the host launches one by one."""
    outside = sum(
        times
        for one, times in program.executed(lengths)
        if one.is_kernel and one.name not in program.captured
    )
    return counts(program, lengths)._asdict() | {"kernels_outside_graphs": outside}


def longest_loop(program: Program, lengths: dict[str, float]) -> Program:
    """Returns one iteration of the loop with most kernels as a program, which is a
    simulation in a search; the whole program if it has no loop."""

    def kernels(loop):
        body = dataclasses.replace(program, entry=loop.body)
        trips = program.trips(loop) or lengths.get(loop.name, 1)
        return trips * counts(body, lengths).kernels

    loop = max(program.loops(program.entry), key=kernels, default=None)
    entry = program.entry if loop is None else loop.body
    return dataclasses.replace(program, entry=entry)


def parts_of(
    program: Program, computation: str, lengths: dict[str, float], depth: int = 0
) -> Iterator[dict]:
    """Yields what one iteration of each loop executes, without the loops in it; first
    the part outside of all loops."""
    if not depth:
        yield {"part": "outside of loops", "times": 1} | own(program, computation)
    for loop in program.loops(computation):
        trips = program.trips(loop)
        name = (*loop.functions, "a loop of XLA's")[0]
        yield {
            "part": "  " * depth + name,
            "times": lengths.get(loop.name, 1) if trips is None else trips,
        } | own(program, loop.body)
        yield from parts_of(program, loop.body, lengths, depth + 1)


def own(program: Program, computation: str) -> dict[str, float]:
    """Returns what a computation executes besides its loops."""
    kernels = list(program.kernels(computation))
    opcodes = [program.opcodes(one) for one in kernels]
    return {
        "kernels": len(kernels),
        "cycles": sum(one.cycles or 0 for one in kernels),
        "gathers": sum(one["gather"] for one in opcodes),
        "scatters": sum(one["scatter"] for one in opcodes),
    }


def make_table(row: dict) -> rich.table.Table:
    """Returns the counts of a program as a table."""
    chip = CHIPS.get(row["device"].partition(":")[0])
    once, total = row["longest_loop"], row["total"]
    counted = ["kernels", "cycles", "gathers", "scatters"]
    if not total["cycles"]:
        counted.remove("cycles")
    table = rich.table.Table(
        "part",
        *(rich.table.Column(one, justify="right") for one in ("times", *counted)),
        title=f"{row['program']} for {row['device']}, compiled in "
        f"{row['compile_seconds']:.0f} s",
    )
    for part in row["parts"]:
        numbers = (f"{part[one]:,.0f}" for one in counted)
        table.add_row(part["part"], f"{part['times']:,.3g}", *numbers)
    for title, found in (("longest loop, with its loops", once), ("total", total)):
        numbers = (f"{found[one]:,.1f}" for one in counted)
        table.add_row(title, "", *numbers)
    notes = []
    if total["cycles"]:
        notes.append(f"custom calls {once['custom_calls']:.0f}")
    else:
        notes.append(
            f"outside of CUDA graphs {once['predicates']:.1f} predicates and "
            f"{once['kernels_outside_graphs']:.1f} kernels"
        )
    if chip and chip.clock:
        microseconds = 1e6 * once["cycles"] / chip.clock
        notes.append(f"{microseconds:.0f} us at {chip.clock / 1e6:g} MHz")
    table.caption = f"once through the longest loop: {', '.join(notes)}"
    return table


def rules_of(library: str, name: str) -> tuple[Callable, Callable]:
    """Returns the start and the step of a game; both return states and legal actions.

    A step of pgx computes more than the rules; its observation is left out.
    """
    if library == "azjax":
        game = games.make(name)

        def look(state):
            return state, game.legal_action_mask(state), state.terminated

        return lambda: look(game.init()), lambda *args: look(game.step(*args))
    env = pgx.make(name)  # pyright: ignore[reportArgumentType]

    def look_at(state):
        ended = jnp.logical_or(state.terminated, state.truncated)
        return state.replace(observation=None), state.legal_action_mask, ended

    blank = jax.eval_shape(env.init, jax.random.key(0)).observation

    def step(state, action):
        zeros = jnp.zeros(blank.shape, blank.dtype)
        return look_at(env.step(state.replace(observation=zeros), action))

    return lambda: look_at(env.init(jax.random.key(0))), step


def measure_rules(library: str, name: str, settings: Settings) -> dict:
    """Returns what a step of all games executes."""
    start, step = rules_of(library, name)
    mesh = mesh_for(settings.device)

    def step_all(states, actions):
        return jax.vmap(step)(states, actions)

    def play():
        bits = jax.random.bits(jax.random.key(0), (settings.batch,))
        first = start()

        def move(carry, _):
            (states, legal, _), bits = carry
            bits, actions = jax.vmap(cheap_sample)(bits, legal)
            found = step_all(states, actions)
            found = jax.vmap(lambda one: select(one[2], first, one))(found)
            return (found, bits), None

        filled = jax.vmap(lambda _: first)(bits)
        return jax.lax.scan(move, (filled, bits), None, NUM_MOVES)[0]

    def fill():
        states, *_ = start()
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * settings.batch), states)

    actions = jax.ShapeDtypeStruct((settings.batch,), "int32")
    with tracing_for(mesh.devices.flat[0].platform):
        arguments = placed(mesh, (jax.eval_shape(fill), actions))
        found = report(
            mesh, jit_network(step_all), *arguments, trips=lambda: measure_trips(play)
        )
    return found["total"] | {"compile_seconds": found["compile_seconds"]}


def measure_games(settings: Settings) -> list[dict]:
    """Returns what a step of each game executes, by library; None in place of a program
    that does not fit into the device's memory."""
    rows = []
    for name in settings.games:
        row: dict[str, Any] = {"device": settings.device, "batch": settings.batch}
        row["game"] = name
        names = {"azjax": name, "pgx": ROWS.get(name)}
        for library in settings.libraries:
            own_name = names[library]
            if own_name is None:
                continue
            try:
                row[library] = measure_rules(library, own_name, settings)
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                row[library] = None
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def make_games_table(rows: list[dict]) -> rich.table.Table:
    """Returns the table of games."""
    has_cycles = any((row.get("azjax") or {}).get("cycles") for row in rows)
    names = (
        ("cycles", "gathers", "scatters") if has_cycles else ("kernels", "predicates")
    )
    columns = [f"{library}: {name}" for library in ("azjax", "pgx") for name in names]
    table = rich.table.Table(
        "game",
        *(rich.table.Column(one, justify="right") for one in columns),
        title=f"A step and the legal actions of {rows[0]['batch']:,} games, for "
        f"{rows[0]['device']}",
    )
    for row in rows:
        cells = []
        for library in ("azjax", "pgx"):
            found = row.get(library, dict.fromkeys(names, "-"))
            found = found or dict.fromkeys(names, "too large")
            cells += [
                one if isinstance(one, str) else f"{one:,.0f}"
                for one in (found[name] for name in names)
            ]
        table.add_row(row["game"], *cells)
    return table


def recorded_counts(row: dict) -> dict[str, float]:
    """Returns the numbers of a program that are recorded: those of a simulation for a
    GPU, and of all for a TPU."""
    if row["total"]["cycles"]:
        names = ("cycles", "gathers", "scatters")
        return {name: round(row["total"][name]) for name in names}
    names = ("kernels", "predicates", "kernels_outside_graphs")
    return {name: round(row["longest_loop"][name], 1) for name in names}


def worse(found: dict[str, float], recorded: dict[str, float]) -> list[str]:
    """Returns what a program executes more of than is recorded and allowed."""
    return [
        f"{found[name]:,.10g} {name} in place of {number:,.10g}"
        for name, number in recorded.items()
        if found[name] > number * (TOLERANCE if name in ("kernels", "cycles") else 1)
    ]


def check(settings: Settings) -> None:
    """Compiles the recorded programs and compares them, or records new numbers.

    Raises:
        SystemExit: one of them executes more.
    """
    recorded = json.loads(RECORDED.read_text())
    compilers = [f"{name}=={metadata.version(name)}" for name in COMPILERS]
    if not settings.record and recorded["compilers"] != compilers:
        raise SystemExit(
            f"{RECORDED.name} was recorded with {', '.join(recorded['compilers'])}; "
            f"others compile other programs: {', '.join(compilers)}"
        )
    programs, failures = {}, []
    for title, numbers in recorded["programs"].items():
        device, name = title.split()
        (row,) = measure(name, dataclasses.replace(settings, device=device))
        programs[title] = found = recorded_counts(row)
        seconds = f"{row['compile_seconds']:.0f} s"
        print(f"{title}: {found}, compiled in {seconds}", flush=True)
        failures += [f"{title}: {each}" for each in worse(found, numbers)]
    if settings.record:
        recorded = {"compilers": compilers, "programs": programs}
        RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")
    elif failures:
        raise SystemExit("\n".join(failures))


def main(settings: Settings) -> None:
    """Compiles and prints."""
    if settings.check or settings.record:
        check(settings)
        return
    results: list[Any] = []
    for name in settings.programs:
        if name == "games":
            results += measure_games(settings)
        else:
            results += measure(name, settings)
    if settings.json:
        print(json.dumps(results, indent=2))
        return
    of_games = [row for row in results if "game" in row]
    rich.print(*(make_table(row) for row in results if "program" in row))
    if of_games:
        rich.print(make_games_table(of_games))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
