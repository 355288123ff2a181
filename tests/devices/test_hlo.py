"""Reading programs. `tpu_loop.hlo` is as the TPU compiler writes: a loop of 3 steps,
whose number only the condition says, around one that depends on the data, and arrays in
on-chip memory, S(1)."""

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


def test_kernels_are_what_computes_or_moves(program):
    assert [kernel.name for kernel in program.kernels("body.1")] == [
        *("found.1", "put.1", "copy-start.1")
    ]
    assert list(program.kernels("main.1")) == []


def test_a_loop_is_run_as_often_as_its_condition_says(program):
    outer, inner = program.instructions["loop.1"], program.instructions["loop.2"]
    assert program.trips(outer) == 3
    assert program.trips(inner) is None
    times = {kernel.name: number for kernel, number in program.executed()}
    assert times == {"found.1": 3, "put.1": 3, "copy-start.1": 3, "sum.1": 3}


def test_collectives_are_counted_by_their_names(program):
    assert program.collectives() == {"all-reduce": 1}


def test_an_instruction_knows_the_functions_that_made_it(program):
    functions = program.instructions["put.1"].functions
    assert functions == ("inner.<locals>.step", "outer")
    assert program.instructions["found.1"].functions == ()


@pytest.mark.parametrize(
    ("kernel", "size"),
    [
        # Of the 100 numbers 4 are read, by 4 indices; the result stays on the chip.
        ("found.1", 4 * 4 + 4 * 4),
        # The indices are read and 4 of the 100 numbers are written in place.
        ("put.1", 4 * 4 + 4 * 4),
        ("copy-start.1", 4 * 4),
        # 100 numbers and a counter are read and written.
        ("sum.1", 2 * (4 + 400)),
    ],
)
def test_a_kernel_moves_what_it_reads_and_writes_in_the_main_memory(
    program, kernel, size
):
    assert kernel_bytes(program, program.instructions[kernel]) == size


def test_the_traffic_of_a_loop_counts_as_often_as_it_is_run(program):
    assert traffic(program) == 3 * (32 + 32 + 16 + 808)


def test_a_length_that_the_program_does_not_say_can_be_given(program):
    assert traffic(program, {"loop.2": 5}) == 3 * (32 + 32 + 16 + 5 * 808)


def test_a_program_of_this_machine_is_read():
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
