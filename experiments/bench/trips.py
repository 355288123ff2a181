"""Measures how often loops of data-dependent length repeat.

A compiled program says how long a loop is only if that is known. For the others, the
function is run on this machine with counters in its loops.
"""

import itertools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from azjax.devices import Instruction, Program

Trips = dict[tuple[str, ...], float]


def measure_trips(function: Callable[..., Any], *arguments: Any) -> Trips:
    """Returns the mean iterations of each `while_loop` per run of it, by the Python
    functions that created it, the innermost first; loops that never ran are left out.
    """
    closed = jax.make_jaxpr(function)(*arguments)
    loops: list[Any] = []
    _find(closed.jaxpr, loops)

    @jax.jit
    def run(*flat):
        totals = jnp.zeros((len(loops), 2), jnp.int32)  # runs and iterations
        return _evaluate(closed, flat, totals, [id(loop) for loop in loops])[1]

    trips: dict[tuple[str, ...], list[int]] = {}
    if loops:
        totals = run(*jax.tree.leaves(arguments)).tolist()
        for loop, (runs, iterations) in zip(loops, totals, strict=True):
            found = trips.setdefault(_functions(loop), [0, 0])
            found[0] += runs
            found[1] += iterations
    return {names: total / runs for names, (runs, total) in trips.items() if runs}


def lengths_of(program: Program, measure: Callable[[], Trips]) -> dict[str, float]:
    """Returns the lengths of the loops of a program, for `azjax.devices.counts`: for
    each loop those of the measured one that shares most of its functions, 0 if none
    does.

    Args:
        program: compiled.
        measure: calls `measure_trips`; used if a length depends on the data.
    """
    loops = [
        one
        for one in program.instructions.values()
        # XLA makes loops without functions.
        if one.opcode == "while" and one.functions and program.trips(one) is None
    ]
    trips, lengths = measure() if loops else {}, {}
    for loop in loops:
        nearest = max(trips, key=lambda names: _shared(names, loop), default=())
        is_known = _shared(nearest, loop) > 0
        lengths[loop.name] = trips[nearest] if is_known else 0
    return lengths


def _shared(names: tuple[str, ...], loop: Instruction) -> int:
    """Returns how many of a loop's functions are the given ones, from the innermost."""
    pairs = zip(names, loop.functions, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _find(jaxpr: core.Jaxpr, loops: list[Any]) -> None:
    for equation in jaxpr.eqns:
        if equation.primitive.name == "while":
            loops.append(equation)
        for inner in _inner(equation):
            _find(inner.jaxpr, loops)


def _inner(equation: Any) -> list[core.ClosedJaxpr]:
    found = []
    for value in equation.params.values():
        values = value if isinstance(value, tuple | list) else (value,)
        found += [one for one in values if isinstance(one, core.ClosedJaxpr)]
    return found


def _evaluate(
    closed: core.ClosedJaxpr, arguments: Any, totals: jax.Array, loops: list[int]
) -> tuple[list[Any], jax.Array]:
    """Returns the results of a traced function and the totals with those of its loops.

    Args:
        closed: traced.
        arguments: its arguments.
        totals: `[L, 2]` runs and iterations of each loop.
        loops: identities of the loops' equations.
    """
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values |= zip(jaxpr.invars, arguments, strict=True)

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, core.Literal) else values[variable]

    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        inputs = [read(variable) for variable in equation.invars]
        inner: list[Any] = []
        for one in _inner(equation):
            _find(one.jaxpr, inner)
        if name == "while":
            results, totals = _repeat(equation, inputs, totals, loops)
        elif not inner:
            # A function of this operation alone.
            read_ones = [v for v in equation.invars if isinstance(v, core.Var)]
            alone = jaxpr.replace(
                constvars=[],
                invars=read_ones,
                outvars=equation.outvars,
                eqns=[equation],
            )
            apply = core.jaxpr_as_fun(core.ClosedJaxpr(alone, ()))
            results = apply(*map(read, read_ones))
        elif name == "scan":
            results, totals = _scan(equation, inputs, totals, loops)
        elif name == "cond":
            branches = [
                lambda totals, *inputs, branch=branch: _evaluate(
                    branch, inputs, totals, loops
                )
                for branch in params["branches"]
            ]
            results, totals = jax.lax.switch(inputs[0], branches, totals, *inputs[1:])
        else:  # a function that is called
            (called,) = _inner(equation)
            results, totals = _evaluate(called, inputs, totals, loops)
        values |= zip(equation.outvars, results, strict=True)
    return [read(variable) for variable in jaxpr.outvars], totals


def _repeat(equation: Any, inputs: list[Any], totals: jax.Array, loops: list[int]):
    params, place = equation.params, loops.index(id(equation))
    of_test, of_body = params["cond_nconsts"], params["body_nconsts"]
    tested, used = inputs[:of_test], inputs[of_test : of_test + of_body]

    def goes_on(values):
        arguments = (*tested, *values)
        return _evaluate(params["cond_jaxpr"], arguments, totals, loops)[0][0]

    def body(carry):
        values, totals = carry
        results, totals = _evaluate(
            params["body_jaxpr"], (*used, *values), totals, loops
        )
        # Under `vmap` the test is an array, and finished elements keep their values.
        lives = goes_on(values)

        def keep(new, old):
            shape = lives.shape + (1,) * (new.ndim - lives.ndim)
            return jnp.where(lives.reshape(shape), new, old)

        if lives.ndim:
            results = list(map(keep, results, values))
        return results, totals.at[place, 1].add(1)

    start = inputs[of_test + of_body :], totals.at[place, 0].add(1)
    return jax.lax.while_loop(lambda carry: goes_on(carry[0]).any(), body, start)


def _scan(equation: Any, inputs: list[Any], totals: jax.Array, loops: list[int]):
    params = equation.params
    of_consts, of_carry = params["num_consts"], params["num_carry"]
    used, carried = inputs[:of_consts], inputs[of_consts : of_consts + of_carry]

    def step(carry, each):
        values, totals = carry
        results, totals = _evaluate(
            params["jaxpr"], (*used, *values, *each), totals, loops
        )
        return (results[:of_carry], totals), results[of_carry:]

    (carried, totals), stacked = jax.lax.scan(
        step,
        (carried, totals),
        inputs[of_consts + of_carry :],
        params["length"],
        params["reverse"],
    )
    return [*carried, *stacked], totals


def _functions(equation: Any) -> tuple[str, ...]:
    """Returns the functions that created an operation, without JAX's own."""
    own = os.path.dirname(jax.__file__)
    frames = equation.source_info.traceback.frames
    return tuple(
        frame.function_name for frame in frames if not frame.file_name.startswith(own)
    )
