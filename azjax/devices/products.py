"""Counts the matrix products of a traced function."""

import collections
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import core


class Product(NamedTuple):
    """A matrix product or a convolution.

    kind: `product` or `convolution`.
    left: shape of the left argument.
    right: shape of the right argument; of a convolution the kernel.
    output: shape of the result.
    terms: number of products summed for each element of the result.
    """

    kind: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    output: tuple[int, ...]
    terms: int

    @property
    def flops(self) -> int:
        """Multiplications and additions, padding included."""
        return 2 * math.prod(self.output) * self.terms


def products(
    function: Callable[..., Any], *arguments: Any
) -> collections.Counter[Product]:
    """Counts the matrix products of a function.

    Args:
        function: only traced.
        *arguments: arrays or `jax.ShapeDtypeStruct`s.
    """
    return products_of(jax.make_jaxpr(function)(*arguments).jaxpr)


def products_of(jaxpr: core.Jaxpr) -> collections.Counter[Product]:
    """Counts the matrix products of a traced function on all devices together.

    The body of a `scan` counts once per iteration, that of a `while_loop` once.
    """
    counts: collections.Counter[Product] = collections.Counter()
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            counts[_dot(equation)] += 1
        elif name == "conv_general_dilated":
            counts[_convolution(equation)] += 1
        times = _times(name, equation.params)
        for inner in _inner(equation.params.values()):
            for product, number in products_of(inner).items():
                counts[product] += times * number
    return counts


def _times(name: str, params: dict[str, Any]) -> int:
    """Returns how often the inner functions of an equation are executed."""
    if name == "scan":
        return params["length"]
    if name == "shard_map":  # written for one device
        return params["mesh"].size
    return 1


def _inner(values: Sequence[Any] | Any) -> Iterator[core.Jaxpr]:
    for value in values:
        if isinstance(value, core.ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, core.Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            yield from _inner(value)


def _shapes(equation: core.JaxprEqn) -> tuple[tuple[int, ...], ...]:
    avals: list[Any] = [
        variable.aval for variable in (*equation.invars, *equation.outvars)
    ]
    return tuple(aval.shape for aval in avals)


def _dot(equation: core.JaxprEqn) -> Product:
    left, right, output = _shapes(equation)
    (contracted, _), _ = equation.params["dimension_numbers"]
    terms = math.prod(left[axis] for axis in contracted)
    return Product("product", left, right, output, terms)


def _convolution(equation: core.JaxprEqn) -> Product:
    left, right, output = _shapes(equation)
    features = right[equation.params["dimension_numbers"].rhs_spec[0]]
    return Product("convolution", left, right, output, math.prod(right) // features)
