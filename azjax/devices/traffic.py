"""Main memory traffic of a compiled program (bytes read and written).

Counted as in XLA's cost analysis, but with trip counts of loops: every kernel reads its
arguments and writes its results; a gather reads only the gathered part, an in-place
update writes only the update. Padding of TPU tiles is not counted, nor are arrays in
on-chip memory.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from azjax.devices.hlo import Instruction, Program

_ARRAY = re.compile(r"\b(pred|[a-z]+\d+[a-z0-9]*)\[([\d,]*)\](\{[^}]*\})?")
_ON_CHIP = re.compile(r"S\([1-9]")  # a memory space other than the main memory
_BITS = re.compile(r"\D*(\d+)")
_READS_PART = ("gather", "dynamic-slice", "slice")
_WRITES_PART = ("scatter", "dynamic-update-slice")


class _Array(NamedTuple):
    size: int  # bytes
    is_main: bool  # in the main memory


def _arrays(shape: str) -> list[_Array]:
    arrays = []
    for dtype, sizes, layout in _ARRAY.findall(shape):
        number = _BITS.match(dtype)
        bits = int(number[1]) if number and dtype != "pred" else 8
        size = math.prod(int(size) for size in sizes.split(",") if size) * bits // 8
        arrays.append(_Array(size, not _ON_CHIP.search(layout)))
    return arrays


def _main(shape: str) -> int:
    """Returns the bytes of arrays in the main memory."""
    return sum(array.size for array in _arrays(shape) if array.is_main)


def _size(shape: str) -> int:
    return sum(array.size for array in _arrays(shape))


def traffic(program: Program, lengths: Mapping[str, int] | None = None) -> int:
    """Returns the bytes that a call of a program reads and writes.

    Args:
        program: compiled.
        lengths: trip counts of loops, as `Program.executed` takes them.
    """
    return sum(
        times * kernel_bytes(program, kernel)
        for kernel, times in program.executed(lengths)
    )


def kernel_bytes(program: Program, kernel: Instruction) -> int:
    """Returns the bytes that a kernel reads and writes."""
    if kernel.opcode.endswith("-start"):  # the first two arrays are moved
        first, second = (*_arrays(kernel.shape), *[_Array(0, False)] * 2)[:2]
        return min(first.size, second.size) * (first.is_main + second.is_main)
    arguments = [program.instructions.get(name) for name in kernel.operands]
    scope, names = program.instructions, kernel.operands
    users, results = [kernel], [kernel]
    if kernel.opcode == "fusion":
        scope = program.computations[kernel.called["calls"][0]]
        users = list(scope.values())
        parameters = {user.parameter: user.name for user in users}
        names = [parameters.get(number, "") for number in range(len(arguments))]
        results = _results(scope)
    read = sum(
        _least(_main(argument.shape), _part_read(users, name))
        for name, argument in zip(names, arguments, strict=True)
        if argument is not None
    )
    parts = [_part_written(scope, result) for result in results]
    written = None if None in parts else sum(part or 0 for part in parts)
    return read + _least(_main(kernel.shape), written)


def _least(whole: int, part: int | None) -> int:
    return whole if part is None else min(whole, part)


def _part_read(users: Sequence[Instruction], name: str) -> int | None:
    """Returns the bytes of an array that some instructions read; None: all."""
    total = 0
    for user in users:
        if name not in user.operands:
            continue
        if user.opcode == "bitcast":
            part = _part_read(users, user.name)
        elif user.operands.index(name) == 0 and user.opcode in _READS_PART:
            part = _size(user.shape)
        elif user.operands.index(name) == 0 and user.opcode in _WRITES_PART:
            part = 0  # in place
        else:
            part = None
        if part is None:
            return None
        total += part
    return total


def _results(computation: dict[str, Instruction]) -> list[Instruction]:
    """Returns the instructions whose results a computation returns."""
    root = next(one for one in computation.values() if one.is_root)
    results = [root]
    if root.opcode == "tuple":
        results = [computation[name] for name in root.operands]
    for place, one in enumerate(results):
        while one.opcode == "bitcast" and one.operands[0] in computation:
            one = computation[one.operands[0]]  # noqa: PLW2901
        results[place] = one
    return results


def _part_written(scope: dict[str, Instruction], result: Instruction) -> int | None:
    """Returns the bytes that an instruction writes; None: its whole result."""
    if result.opcode not in _WRITES_PART:
        return _size(result.shape) if result.opcode != "fusion" else None
    arrays = [scope[name].shape for name in result.operands if name in scope]
    if result.opcode == "dynamic-update-slice":
        return _size(arrays[1])
    return sum(map(_size, arrays[len(arrays) // 2 + 1 :]))  # the updates
