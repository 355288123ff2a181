"""Estimates of a compiled program's time on an accelerator, from its text.

A TPU's compiler writes its estimate of the cycles of each kernel into the program; it
has none for gathers, scatters, custom calls, collectives and copies between memories.

A GPU's compiler writes none. Four searches measured on one H200 (azjax's and mctx's,
Gumbel and PUCT; 4,096 games, 32 simulations, a trivial network, without CUDA graphs)
took `SIMULATION + KERNEL * kernels + PREDICATE * predicates` per simulation, within 1%.
A predicate is a decision that the host takes: it waits for all kernels and copies one
value from the device. With three numbers fitted to four times, other programs are an
extrapolation: `SIMULATION` is the work of those kernels, and `KERNEL` is less than a
launch usually takes, because the device computes while the host launches.
"""

from collections.abc import Mapping
from typing import NamedTuple

from azjax.devices.chips import Chip
from azjax.devices.hlo import Program

SIMULATION, KERNEL, PREDICATE = 93e-6, 0.41e-6, 22.9e-6  # seconds


class Counts(NamedTuple):
    """What one call of a program executes.

    kernels: fusions, copies and the like.
    predicates: conditionals, and tests of loops without a known trip count, that are
        not in a CUDA graph; the host decides them on a GPU.
    cycles: a TPU's, as far as its compiler estimates them.
    gathers: gathers.
    scatters: scatters.
    custom_calls: custom calls.
    """

    kernels: float
    predicates: float
    cycles: float
    gathers: float
    scatters: float
    custom_calls: float

    def seconds(self, chip: Chip) -> float | None:
        """Estimates the time on a chip, on a GPU without the work of the kernels; None
        if its clock is unknown."""
        if chip.gpu is not None:
            return KERNEL * self.kernels + PREDICATE * self.predicates
        return None if chip.clock is None else self.cycles / chip.clock


def counts(program: Program, lengths: Mapping[str, float] | None = None) -> Counts:
    """Counts what a call of a program executes.

    Args:
        program: compiled.
        lengths: trip counts of loops, as `Program.executed` takes them.
    """
    kernels = predicates = cycles = gathers = scatters = custom_calls = 0
    for one, times in program.executed(lengths):
        if one.is_kernel:
            kernels += times
            cycles += times * (one.cycles or 0)
            opcodes = program.opcodes(one)
            gathers += times * opcodes["gather"]
            scatters += times * opcodes["scatter"]
            custom_calls += times * (one.opcode == "custom-call")
        elif one.name in program.captured:
            continue
        elif one.opcode == "conditional":
            predicates += times
        elif one.opcode == "while" and program.trips(one) is None:
            predicates += times * (1 + (lengths or {}).get(one.name, 1))
    return Counts(kernels, predicates, cycles, gathers, scatters, custom_calls)
