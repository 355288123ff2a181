"""Identifies an optimizer by the programs of its `init` and `update`."""

import hashlib
import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import optax
from jax.extend import core

DEFAULT = "adamw"
_LIBRARIES = ("jax", "optax")
VERSION_INDEPENDENT = ("state", "constants")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_NAMEDTUPLE = re.compile(r"namedtuple\[(\w+)\]")


def optimizer_identity(
    optimizer: optax.GradientTransformation, params: Any
) -> dict[str, Any]:
    """Describes an optimizer as JSON values that are the same in every process.

    Args:
        optimizer: only traced.
        params: the parameters that it updates.

    Returns:
        `state`, the types of its state; `constants`, the floating-point literals of its
        programs, which include its hyperparameters and those of its schedules; `digest`
        of the programs; `versions` of JAX and Optax, on which the digest depends.
    """
    update = optax.with_extra_args_support(optimizer).update
    state = jax.eval_shape(optimizer.init, params)
    programs = (
        jax.make_jaxpr(optimizer.init)(params),
        jax.make_jaxpr(
            lambda gradients, state, params, progress: update(
                gradients, state, params, progress=progress
            )
        )(params, state, params, jax.ShapeDtypeStruct((), np.float32)),
    )
    digest, constants = hashlib.sha256(), set()
    for program in programs:
        digest.update(_ADDRESS.sub("", str(program)).encode())
        for value in _constants(program):
            array = np.asarray(value)
            digest.update(array.tobytes())
            is_real = array.ndim == 0 and np.issubdtype(array.dtype, np.floating)
            if is_real and np.isfinite(array):
                constants.add(float(f"{float(array):.6g}"))
    return {
        "state": _NAMEDTUPLE.findall(str(jax.tree.structure(state))),
        "constants": sorted(constants),
        "digest": digest.hexdigest()[:16],
        "versions": {name: importlib.metadata.version(name) for name in _LIBRARIES},
    }


def comparable(
    saved: dict[str, Any], wanted: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the comparable parts of two identities: other library versions trace the
    same optimizer to another program."""
    if saved.get("versions") == wanted.get("versions"):
        return saved, wanted
    stable_saved, stable_wanted = (
        {name: value for name, value in identity.items() if name in VERSION_INDEPENDENT}
        for identity in (saved, wanted)
    )
    return stable_saved, stable_wanted


def _constants(program: core.ClosedJaxpr | core.Jaxpr) -> Iterator[Any]:
    """Yields the literals and constant arrays of a program and of its inner
    programs."""
    if isinstance(program, core.ClosedJaxpr):
        yield from program.consts
        program = program.jaxpr
    for equation in program.eqns:
        for variable in equation.invars:
            if isinstance(variable, core.Literal):
                yield variable.val
        for inner in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda leaf: isinstance(leaf, core.ClosedJaxpr | core.Jaxpr),
        ):
            if isinstance(inner, core.ClosedJaxpr | core.Jaxpr):
                yield from _constants(inner)
