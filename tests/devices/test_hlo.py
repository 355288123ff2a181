"""Parsing of compiled programs.

`tpu_loop.hlo` has the form that the TPU compiler writes: a loop of 3 steps, a number
only in the condition, around a loop whose number of steps depends on data, and arrays
in on-chip memory, S(1).
"""

import pathlib

import jax
import jax.numpy as jnp
import pytest

from azjax.devices import read_program, traffic
from azjax.devices.traffic import kernel_bytes


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
    times = {kernel.name: number for kernel, number in program.executed()}
    assert times == {"found.1": 3, "put.1": 3, "copy-start.1": 3, "sum.1": 3}
    assert program.collectives() == {"all-reduce": 1}
    functions = program.instructions["put.1"].functions
    assert functions == ("inner.<locals>.step", "outer")
    assert program.instructions["found.1"].functions == ()


def test_the_traffic_of_a_program_is_that_of_its_kernels_in_each_step(program):
    sizes = {
        # 4 of the 100 numbers are read, by 4 indices; the result stays on the chip.
        "found.1": 4 * 4 + 4 * 4,
        # The indices are read and 4 of the 100 numbers are written in place.
        "put.1": 4 * 4 + 4 * 4,
        "copy-start.1": 4 * 4,
        # 100 numbers and a counter are read and written.
        "sum.1": 2 * (4 + 400),
    }
    for kernel, size in sizes.items():
        assert kernel_bytes(program, program.instructions[kernel]) == size
    assert traffic(program) == 3 * (32 + 32 + 16 + 808)
    # The length of a loop that is missing in the program can be given.
    assert traffic(program, {"loop.2": 5}) == 3 * (32 + 32 + 16 + 5 * 808)


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
    assert traffic(program) >= 7 * 3 * 8 * 8 * 4  # two arguments and a result
    assert program.collectives() == {}
