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
        name, params = equation.primitive.name, equation.params
        if name in ("dot_general", "conv_general_dilated"):
            variables: list[Any] = [*equation.invars, *equation.outvars]
            left, right, output = (variable.aval.shape for variable in variables)
            numbers = params["dimension_numbers"]
            if name == "dot_general":
                (contracted, _), _ = numbers
                kind, terms = "product", math.prod(left[axis] for axis in contracted)
            else:
                features = right[numbers.rhs_spec[0]]
                kind, terms = "convolution", math.prod(right) // features
            counts[Product(kind, left, right, output, terms)] += 1
        times = 1
        if name == "scan":
            times = params["length"]
        elif name == "shard_map":  # written for one device
            times = params["mesh"].size
        for inner in _inner(params.values()):
            for product, number in products_of(inner).items():
                counts[product] += times * number
    return counts


def _inner(values: Sequence[Any] | Any) -> Iterator[core.Jaxpr]:
    for value in values:
        if isinstance(value, core.ClosedJaxpr):
            yield value.jaxpr
        elif isinstance(value, core.Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            yield from _inner(value)
