"""Counts in compiled programs: instructions, loops, kernels, from their HLO text.

The text is that of `compiled.as_text()`, where `compiled` is `jax.jit(f).lower(...)
.compile()`, for any device.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator

# Instructions that launch nothing: they name, group or await data. Loops, calls and
# conditionals launch what is in the computations that they run.
_NO_KERNEL = frozenset(
    {
        "add-dependency",
        "after-all",
        "bitcast",
        "call",
        "conditional",
        "constant",
        "get-tuple-element",
        "opt-barrier",
        "parameter",
        "partition-id",
        "replica-id",
        "tuple",
        "while",
    }
)
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r"(?:^|[\s})\]])([a-z][a-z0-9\-]*)\(")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|true_computation|false_computation)"
    r"=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction.

    name: unique in the program.
    opcode: such as `fusion`, `gather` or `while`.
    op_name: where in the traced function it comes from; empty where unknown.
    called: `(attribute, computation)` for the computations that it runs or applies.
    """

    name: str
    opcode: str
    op_name: str
    called: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Loop:
    """One while loop.

    op_name: where in the traced function it comes from; empty where unknown.
    body, condition: its computations.
    parent: the body of the loop that it is in; None: it is in no other.
    """

    op_name: str
    body: str
    condition: str
    parent: str | None


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program.

    entry: the computation that begins.
    computations: the instructions of each computation, in the order of the text.
    """

    entry: str
    computations: dict[str, tuple[Instruction, ...]]

    def opcodes(self) -> Counter[str]:
        """Returns how many instructions there are of each opcode, those in fusions
        included; loop bodies count once."""
        return Counter(
            instruction.opcode
            for instructions in self.computations.values()
            for instruction in instructions
        )

    def loops(self) -> list[Loop]:
        """Returns the loops, each before those in its body, else in program order."""
        return list(self._loops(self.entry, None))

    def kernels(self, computation: str) -> Counter[str]:
        """Returns how many launches one run of a computation makes, by opcode.

        Each fusion, copy, custom call or other computing instruction is one launch.
        Called computations and all branches of conditionals are included, loops in the
        computation are not.
        """
        return Counter(
            instruction.opcode
            for instruction in self._run_by(computation)
            if instruction.opcode not in _NO_KERNEL
            and not instruction.opcode.endswith("-done")
        )

    def _run_by(self, computation: str) -> Iterator[Instruction]:
        for instruction in self.computations[computation]:
            yield instruction
            if instruction.opcode in ("call", "conditional"):
                for _, called in instruction.called:
                    yield from self._run_by(called)

    def _loops(self, computation: str, parent: str | None) -> Iterator[Loop]:
        for instruction in self._run_by(computation):
            if instruction.opcode == "while":
                called = dict(instruction.called)
                body = called["body"]
                yield Loop(instruction.op_name, body, called["condition"], parent)
                yield from self._loops(body, body)


def parse(text: str) -> Program:
    """Returns the program that an HLO text describes.

    Raises:
        ValueError: the text has no entry computation.
    """
    entry = None
    computations: dict[str, list[Instruction]] = {}
    instructions: list[Instruction] = []
    for line in text.splitlines():
        if opening := _COMPUTATION.match(line):
            instructions = computations.setdefault(opening[2], [])
            entry = opening[2] if opening[1] else entry
        elif match := _INSTRUCTION.match(line):
            instructions.append(_instruction(match[1], match[2]))
    if entry is None:
        raise ValueError("the text has no ENTRY computation: it is not HLO")
    return Program(
        entry=entry, computations={name: tuple(x) for name, x in computations.items()}
    )


def _instruction(name: str, rest: str) -> Instruction:
    opcode, op_name = _OPCODE.search(rest), _OP_NAME.search(rest)
    called = [match.groups() for match in _CALLED.finditer(rest)]
    if branches := _BRANCHES.search(rest):
        names = branches[1].replace("%", "").split(",")
        called += [("branch_computations", branch.strip()) for branch in names]
    return Instruction(
        name=name,
        opcode=opcode[1] if opcode else "",
        op_name=op_name[1] if op_name else "",
        called=tuple((str(kind), str(target)) for kind, target in called),
    )
