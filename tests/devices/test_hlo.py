"""Parsing of compiled programs.

`tpu_loop.hlo` has the form that the TPU compiler writes: a loop of 3 steps, a number
only in the condition, around a loop whose number of steps depends on data, and cycles
that the compiler estimates for some kernels.
"""

import dataclasses
import pathlib
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.devices import (
    CHIPS,
    Counts,
    compile_program,
    counts,
    read_program,
    topologies,
)
from azjax.devices.hlo import read_captured


@pytest.fixture(scope="module")
def program():
    path = pathlib.Path(__file__).with_name("tpu_loop.hlo")
    return read_program(path.read_text())


def test_kernels_loops_collectives_and_functions_are_read(program):
    assert [kernel.name for kernel in program.kernels("body.1")] == [
        *("found.1", "put.1", "copy-start.1")
    ]
    assert list(program.kernels("main.1")) == []
    # The number of steps of a loop is in its condition.
    outer, inner = program.instructions["loop.1"], program.instructions["loop.2"]
    assert program.trips(outer) == 3
    assert program.trips(inner) is None
    times = {one.name: number for one, number in program.executed() if one.is_kernel}
    assert times == {
        **{"found.1": 3, "put.1": 3, "copy-start.1": 3, "sum.1": 3},
        "any.1": 3 * 2,  # before and after one iteration
    }
    assert program.collectives() == {"all-reduce": 1}
    functions = program.instructions["put.1"].functions
    assert functions == ("inner.<locals>.step", "outer")
    assert program.instructions["found.1"].functions == ()


def test_what_a_program_executes_is_counted_in_each_step(program):
    assert counts(program) == Counts(
        kernels=3 * (4 + 2),
        predicates=3 * 2,
        cycles=3 * (100 + 2 * 7),
        gathers=3 * (1 + 2),
        scatters=3,
        custom_calls=0,
    )
    # The length of a loop that is missing in the program can be given.
    found = counts(program, {"loop.2": 5})
    assert found.predicates == 3 * 6
    assert found.cycles == 3 * (100 + 6 * 7)
    captured = dataclasses.replace(program, captured=frozenset({"loop.2"}))
    assert counts(captured).predicates == 0


def test_the_time_is_that_of_a_tpus_cycles_or_of_launches_and_waits():
    found = Counts(1000, 10, 1_500_000, 5, 5, 5)
    assert found.seconds(CHIPS["v5e"]) == 1e-3
    assert found.seconds(CHIPS["v6e"]) is None
    assert found.seconds(CHIPS["h200"]) == pytest.approx(1000 * 0.41e-6 + 10 * 22.9e-6)


THUNKS = """
002: kWhile         [prev=001 (1) | next=000 (1)]
condition:
    003: kCustomKernel [source | sink] compare grid: [1, 1, 1]
  body:
    000: kCommandBuffer [source       | next=015 (1)]
        005: kCustomKernel [source       | next=013 (1)] gemm grid: [1024, 1, 1]
        013: kConditional  [prev=005 (1) | sink        ]
          true_branch:
            011: kCustomKernel [source | sink] add grid: [1024, 1, 1]
    015: kWhile         [prev=000 (1) | sink        ]
"""
NAMES = {2: "outer", 3: "test", 5: "gemm.1", 13: "cond.1", 11: "add.1", 15: "inner"}


@pytest.mark.parametrize("has_graphs", [True, False])
def test_the_instructions_in_cuda_graphs_are_read(has_graphs, monkeypatch):
    def compile_for(mesh, function, *, options):
        folder = pathlib.Path(options["xla_dump_to"])
        (folder / "f.thunk_metadata.txt").write_text(
            "".join(
                f'thunk_metadata {{ thunk_info {{\nprofile_annotation: "{name}"\n'
                f"thunk_id: {number}\n}} }}\n"
                for number, name in NAMES.items()
            )
        )
        if has_graphs:
            path = folder / "f.thunk_sequence_after_thunk_passes.txt"
            path.write_text(THUNKS)
        return types.SimpleNamespace(as_text=lambda: "")

    monkeypatch.setattr(topologies, "compile_for", compile_for)
    device = types.SimpleNamespace(platform="gpu")
    mesh: Any = types.SimpleNamespace(devices=np.array([device]))
    _, program = compile_program(mesh, jax.jit(lambda: 0))
    assert program.captured == ({"gemm.1", "cond.1", "add.1"} if has_graphs else set())


def test_a_program_from_a_cache_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unset JAX_COMPILATION_CACHE_DIR"):
        read_captured(tmp_path)


def test_a_program_of_this_machine_is_parsed():
    def step(x, _):
        return jnp.sin(x) @ x, None

    function = jax.jit(lambda x: jax.lax.scan(step, x, length=7)[0])
    text = function.lower(jnp.zeros((8, 8))).compile().as_text()
    program = read_program(text)
    (loop,) = program.loops(program.entry)
    assert program.trips(loop) == 7
    made_by_step = [
        kernel
        for kernel in program.kernels(loop.body)
        if any(name.endswith("step") for name in kernel.functions)
    ]
    assert made_by_step
    assert counts(program).kernels >= 7 * 2  # the sine and the product
    assert program.collectives() == {}
