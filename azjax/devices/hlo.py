"""Reads the HLO text of a compiled program."""

import collections
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
# Instructions that launch no kernel.
_FREE = {
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
_HEADER = re.compile(r"(ENTRY )?%([^ ]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%([^ ]+) = (.*)$")
_OPERAND = re.compile(r"%([\w.-]+)")
_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|branch_computations|true_computation|"
    r"false_computation)=(\{[^}]*\}|%[\w.-]+)"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,12})"')  # longer numbers mean unknown
_THUNK = re.compile(r"^( *)(\d+): (k\w+)", re.MULTILINE)
_THUNK_NAME = re.compile(r'profile_annotation: "([^"]+)"\s+thunk_id: (\d+)')
_WHOLE = re.compile(r"\(\d+\)")
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_TABLE = re.compile(r"(\d+) (?:\"(.*)\"|\{(.*)\})$")


class Instruction(NamedTuple):
    """An instruction of a computation.

    name: unique in the program.
    opcode: operation, for example `fusion`.
    shape: shape of the result, as HLO text.
    operands: names of other instructions.
    parameter: index of a parameter; None for others.
    is_root: whether it is the computation's result.
    called: called computations, by attribute.
    value: value of an integer constant; None for others.
    trips: known trip count of a loop; None for others.
    cycles: the TPU compiler's estimate; None if it has none.
    functions: Python functions that created it, the innermost first.
    """

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    parameter: int | None
    is_root: bool
    called: dict[str, tuple[str, ...]]
    value: int | None
    trips: int | None
    cycles: int | None
    functions: tuple[str, ...]

    @property
    def is_kernel(self) -> bool:
        """Whether it computes or moves data; a GPU launches a kernel for it."""
        return self.opcode not in _FREE and not self.opcode.endswith("-done")

    @property
    def body(self) -> str:
        """The computation that a loop repeats."""
        return self.called["body"][0]

    @property
    def collective(self) -> str | None:
        """The name of a collective operation; None for other instructions."""
        name = self.opcode.removesuffix("-start")
        return name if name in COLLECTIVES else None


@dataclasses.dataclass(frozen=True)
class Program:
    """The computations of a compiled program.

    computations: instructions of each computation, by name.
    entry: name of the entry computation.
    captured: names of instructions in CUDA graphs, if that was read.
    """

    computations: dict[str, dict[str, Instruction]]
    entry: str
    captured: frozenset[str] = frozenset()

    @functools.cached_property
    def instructions(self) -> dict[str, Instruction]:
        """All instructions by name."""
        return {
            name: instruction
            for computation in self.computations.values()
            for name, instruction in computation.items()
        }

    def executed(
        self, lengths: Mapping[str, float] | None = None
    ) -> Iterator[tuple[Instruction, float]]:
        """Yields the executed instructions, each with its number of executions.

        A loop of data-dependent length tests its condition once more than it repeats;
        of a conditional all branches count.

        Args:
            lengths: mean trip counts of loops of data-dependent length, by name; 1 by
                default.
        """
        yield from self._executed(self.entry, 1, lengths or {})

    def _executed(self, computation: str, times: float, lengths: Mapping[str, float]):
        for one in self._run_by(computation):
            yield one, times
            if one.opcode == "while":
                trips = self.trips(one)
                if trips is None:
                    trips = lengths.get(one.name, 1)
                    (condition,) = one.called["condition"]
                    yield from self._executed(condition, times * (trips + 1), lengths)
                yield from self._executed(one.body, times * trips, lengths)

    def kernels(self, computation: str) -> Iterator[Instruction]:
        """Yields the kernels of a computation, without those of its loops."""
        return (one for one in self._run_by(computation) if one.is_kernel)

    def loops(self, computation: str) -> Iterator[Instruction]:
        """Yields the loops of a computation, without nested ones."""
        return (one for one in self._run_by(computation) if one.opcode == "while")

    def _run_by(self, computation: str) -> Iterator[Instruction]:
        for one in self.computations[computation].values():
            yield one
            if one.opcode in ("call", "conditional"):
                for names in one.called.values():
                    for name in names:
                        yield from self._run_by(name)

    def opcodes(self, instruction: Instruction) -> collections.Counter[str]:
        """Counts the operations of an instruction with those that it fuses."""
        counts = collections.Counter([instruction.opcode])
        for name in instruction.called.get("calls", ()):
            for inner in self.computations[name].values():
                counts += self.opcodes(inner)
        return counts

    def trips(self, loop: Instruction) -> int | None:
        """Returns the trip count of a loop; None if it depends on the data."""
        if loop.trips is not None:
            return loop.trips
        # TPU programs compare the loop counter with a constant instead.
        condition = self.computations[loop.called["condition"][0]]
        end = next(one for one in condition.values() if one.is_root)
        values = [condition[name].value for name in end.operands if name in condition]
        if end.opcode == "compare" and values[1:] and values[0] is None:
            return values[1] or None
        return None

    def collectives(self) -> dict[str, int]:
        """Counts the collective operations by name; those in the body of a loop count
        once."""
        names = (one.collective for one in self.instructions.values())
        return dict(sorted(collections.Counter(filter(None, names)).items()))


def read_program(text: str) -> Program:
    """Parses the text of `jax.stages.Compiled.as_text`."""
    functions = _functions(text)
    computations: dict[str, dict[str, Instruction]] = {}
    entry, current = "", None
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header:
            current = computations.setdefault(header[2], {})
            entry = header[2] if header[1] else entry
        elif line == "}":
            current = None
        elif current is not None and (match := _INSTRUCTION.match(line)):
            instruction = _instruction(match[2], match[3], bool(match[1]), functions)
            current[instruction.name] = instruction
    return Program(computations, entry)


def read_captured(folder: Path) -> frozenset[str]:
    """Returns the names of the instructions that run in CUDA graphs.

    Args:
        folder: where XLA dumped one program for a GPU (`xla_dump_to`).

    Raises:
        ValueError: XLA did not compile the program, as JAX found it in its cache.
    """
    names: dict[int, str] = {}
    for path in folder.glob("*.thunk_metadata.txt"):
        for name, number in _THUNK_NAME.findall(path.read_text()):
            names[int(number)] = name
    if not names:
        raise ValueError(
            "the program was not compiled: unset JAX_COMPILATION_CACHE_DIR, JAX's cache"
        )
    captured, graphs = set(), []  # the indentation of the graphs around a line
    for path in folder.glob("*.thunk_sequence_after_thunk_passes.txt"):
        for indent, number, kind in _THUNK.findall(path.read_text()):
            while graphs and len(indent) <= graphs[-1]:
                graphs.pop()
            if kind == "kCommandBuffer":
                graphs.append(len(indent))
            elif graphs:
                captured.add(names.get(int(number), ""))
    return frozenset(captured)


def _instruction(
    name: str, text: str, is_root: bool, functions: dict[int, tuple[str, ...]]
) -> Instruction:
    shape, text = _balanced(text) if text.startswith("(") else text.partition(" ")[::2]
    opcode, _, text = text.strip().partition("(")
    operands, attributes = _balanced(f"({text}")
    called = {
        match[1]: tuple(_OPERAND.findall(match[2]))
        for match in _CALLED.finditer(attributes)
    }
    trips, frame = _TRIPS.search(attributes), _FRAME.search(attributes)
    cycles = _CYCLES.search(attributes)
    is_parameter = opcode == "parameter"
    return Instruction(
        name=name,
        opcode=opcode,
        shape=shape,
        operands=() if is_parameter else tuple(_OPERAND.findall(operands)),
        parameter=int(operands[1:-1]) if is_parameter else None,
        is_root=is_root,
        called=called,
        value=int(operands[1:-1]) if _WHOLE.fullmatch(operands) else None,
        trips=int(trips[1]) if trips else None,
        cycles=int(cycles[1]) if cycles else None,
        functions=functions.get(int(frame[1]), ()) if frame else (),
    )


def _balanced(text: str) -> tuple[str, str]:
    """Splits a text after the bracket that closes its first one."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return text[: place + 1], text[place + 1 :]
    return text, ""


def _functions(text: str) -> dict[int, tuple[str, ...]]:
    """Returns the functions of each stack frame, the innermost first."""
    tables = {name: _table(text, name) for name in ("FunctionNames", "FileLocations")}
    frames = _table(text, "StackFrames")
    names = {
        number: tables["FunctionNames"].get(_field(row, "function_name_id"), "")
        for number, row in tables["FileLocations"].items()
    }

    @functools.cache
    def chain(number: int) -> tuple[str, ...]:
        functions = []
        while number in frames:
            row = frames[number]
            functions.append(names.get(_field(row, "file_location_id"), ""))
            number = _field(row, "parent_frame_id") - 1  # 0 has no parent
        return tuple(functions)

    return {number: chain(number) for number in frames}


def _table(text: str, name: str) -> dict[int, str]:
    _, _, rest = text.partition(f"\n{name}\n")
    rows = {}
    for line in rest.splitlines():
        row = _TABLE.match(line)
        if row is None:
            break
        rows[int(row[1])] = row[2] or row[3] or ""
    return rows


def _field(row: str, name: str) -> int:
    match = re.search(rf"\b{name}=(\d+)", row)
    return int(match[1]) if match else 0
