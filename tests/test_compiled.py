from collections import Counter

import jax
import jax.numpy as jnp
import pytest

from azjax.compiled import parse

TEXT = """HloModule jit_f, is_scheduled=true

%add_one (parameter.1: s32[4]) -> s32[4] {
  %parameter.1 = s32[4]{0:T(128)} parameter(0)
  %table = f32[4,7]{1,0:T(8,128)S(1)} constant({...})
  ROOT %gather.9 = s32[4]{0} gather(%table, %parameter.1), metadata={op_name="f/gather"}
}

%inner (state.1: (s32[], s32[4])) -> (s32[], s32[4]) {
  %state.1 = (s32[], s32[4]{0}) parameter(0)
  %item = s32[4]{0} get-tuple-element(%state.1), index=1
  %one = (s32[4]{0}, /*index=1*/s32[4]{0}) fusion(%item), kind=kLoop, calls=%add_one
  %start = (s32[4]{0}, s32[4]{0}, u32[]) copy-start(%item)
  %done = s32[4]{0} copy-done(%start)
  ROOT %tuple.1 = (s32[], s32[4]{0}) tuple(%item, %done)
}

%goes_on (state.2: (s32[], s32[4])) -> pred[] {
  %state.2 = (s32[], s32[4]{0}) parameter(0)
  ROOT %less = pred[] compare(%state.2, %state.2), direction=LT
}

%branch (x: s32[4]) -> s32[4] {
  %x = s32[4]{0} parameter(0)
  ROOT %copy.1 = s32[4]{0} copy(%x)
}

%outer (state.3: (s32[], s32[4])) -> (s32[], s32[4]) {
  %state.3 = (s32[], s32[4]{0}) parameter(0)
  %two = s32[4]{0} fusion(%state.3), kind=kLoop, calls=%add_one
  %while.1 = (s32[], s32[4]{0}) while(%state.3), condition=%goes_on, body=%inner, \
metadata={op_name="f/while/body/descend/while"}
  ROOT %choice = s32[4]{0} conditional(%two, %two), \
branch_computations={%branch, %branch}
}

ENTRY %main (start: s32[4]) -> s32[4] {
  %start.1 = s32[4]{0} parameter(0)
  ROOT %while.2 = (s32[], s32[4]{0}) while(%start.1), condition=%goes_on, \
body=%outer, metadata={op_name="f/while"}
}
"""


def test_loops_come_with_the_loop_that_they_are_in():
    loops = parse(TEXT).loops()
    assert [(loop.body, loop.parent) for loop in loops] == [
        ("outer", None),
        ("inner", "outer"),
    ]
    assert loops[1].op_name == "f/while/body/descend/while"
    assert loops[1].condition == "goes_on"


def test_instructions_are_counted_within_fusions_and_once_in_loops():
    counts = parse(TEXT).opcodes()
    assert (counts["gather"], counts["while"], counts["fusion"]) == (1, 2, 2)


def test_kernels_include_branches_but_not_inner_loops():
    program = parse(TEXT)
    assert program.kernels("outer") == Counter(fusion=1, copy=2)
    assert program.kernels("inner") == Counter({"fusion": 1, "copy-start": 1})
    assert program.kernels("main") == Counter()


def test_a_text_without_entry_is_refused():
    with pytest.raises(ValueError, match="ENTRY"):
        parse("HloModule empty")


def test_the_text_of_a_real_program_is_read():
    def double_often(x):
        return jax.lax.fori_loop(0, x.size, lambda i, x: x.at[x[i]].set(2 * i), x)

    text = jax.jit(double_often).lower(jnp.arange(8)).compile().as_text() or ""
    program = parse(text)
    assert len(program.loops()) >= 1
    assert all(
        instruction.opcode
        for instructions in program.computations.values()
        for instruction in instructions
    )
