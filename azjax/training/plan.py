"""The plan of a run: the fraction of it that is done after each iteration."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from azjax.remote import Directory, open_regular, replace_file

PLAN_FILE = "plan.json"
MAX_PLAN_BYTES = 2**20
_MAX_ITERATIONS = 2**31 - 1


class Entry(NamedTuple):
    """An entry of a plan, valid until the next one.

    iteration: first iteration.
    share: fraction of the run that is done then, in [0, 1].
    end: last iteration of the run; None if unknown.
    """

    iteration: int
    share: float
    end: int | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """The fraction of a run that is done after each iteration; schedules follow it.

    The fraction rises linearly with the iterations, hence with the positions played,
    until an entry changes the end. While the end is unknown (in a run of minutes,
    before it is planned) it is that of the last entry, initially 0.

    length: of the run when the last entry was added, (`minutes` or `iterations`,
        number).
    entries: sorted by iteration; at least one.
    """

    length: tuple[str, float]
    entries: tuple[Entry, ...]

    def share(self, iteration: int) -> float:
        """Returns the fraction of the run that is done after `iteration` iterations."""
        entry = next(entry for entry in self.entries[::-1] if entry[0] <= iteration)
        if entry.end is None:
            return entry.share
        if iteration >= entry.end:
            return 1.0
        done = (iteration - entry.iteration) / (entry.end - entry.iteration)
        return entry.share + (1 - entry.share) * done

    @property
    def end(self) -> int | None:
        """The last iteration of the run; None if unknown."""
        return self.entries[-1].end

    def ending(self, iteration: int, end: int | None) -> "Plan":
        """Returns the plan with another end, from an iteration on."""
        return self.continued(Entry(iteration, self.share(iteration), end))

    def continued(self, entry: Entry) -> "Plan":
        """Returns the plan with another entry, in place of those from there on."""
        kept = (old for old in self.entries if old.iteration < entry.iteration)
        return dataclasses.replace(self, entries=(*kept, entry))

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as JSON values."""
        return {
            "length": self.length,
            "entries": [entry._asdict() for entry in self.entries],
        }


def new_plan(length: tuple[str, float]) -> Plan:
    """Returns the plan of a new run; the end of a run of minutes is unknown.

    Args:
        length: (`minutes` or `iterations`, number).
    """
    unit, number = length
    end = int(number) if unit == "iterations" else None
    return Plan(length, (Entry(0, 0.0, end),))


def extended_plan(
    plan: Plan, length: tuple[str, float], iteration: int, seconds: float
) -> Plan:
    """Returns the plan of a run whose length changes.

    The fraction done becomes the completed iterations, or the minutes used, divided by
    the new length, so that schedules continue as in a run of that length. The learning
    rate rises again to that run's cosine (compare the warm restarts of Loshchilov and
    Hutter 2017, "SGDR").

    Args:
        plan: current plan.
        length: new length, (`minutes` or `iterations`, number).
        iteration: completed iterations.
        seconds: time used.

    Raises:
        ValueError: the run has already used more.
    """
    unit, number = length
    used = iteration if unit == "iterations" else seconds / 60
    if number <= used:
        raise ValueError(
            f"{unit} must be more than the {used:.5g} that the run has used: {number:g}"
        )
    end = int(number) if unit == "iterations" else None
    entry = Entry(iteration, used / number, end)
    return dataclasses.replace(plan.continued(entry), length=length)


def plan_from_json(content: Any) -> Plan:
    """Returns the plan from JSON of any origin, in the form of `Plan.to_json`.

    Raises:
        ValueError: it is not a plan.
    """
    try:
        unit, number = content["length"]
        entries = tuple(Entry(**entry) for entry in content["entries"])
        iterations = [entry.iteration for entry in entries]
        ends = [entry.end for entry in entries if entry.end is not None]
        numbers = (number, *(entry.share for entry in entries))
        is_plan = (
            unit in ("minutes", "iterations")
            and all(type(value) in (int, float) for value in numbers)
            and 0 < number <= _MAX_ITERATIONS
            and all(0 <= entry.share <= 1 for entry in entries)
            and all(type(value) is int for value in (*iterations, *ends))
            and iterations == sorted(set(iterations))
            and iterations[:1] == [0]
            and all(entry.iteration <= (entry.end or math.inf) for entry in entries)
            and max(iterations + ends) <= _MAX_ITERATIONS
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("it is not a plan") from error
    if not is_plan:
        raise ValueError("it is not a plan")
    return Plan((unit, number), entries)


def read_plan(directory: Directory) -> Plan:
    """Reads the plan of a run, from a directory of any content.

    Raises:
        ValueError: the plan is missing or damaged.
    """
    path = directory / PLAN_FILE
    try:
        with open_regular(path, MAX_PLAN_BYTES) as file:
            return plan_from_json(json.loads(file.read(MAX_PLAN_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ValueError(f"there is no plan to follow in {path}: {problem}") from None


def plan_to_follow(directory: Directory) -> tuple[Plan, int]:
    """Returns the plan of a run for another run to follow, and its last iteration."""
    plan = read_plan(directory)
    if not plan.end:
        raise ValueError(
            f"the plan in {directory / PLAN_FILE} has no end, or no iteration: the run "
            "stopped before its first iteration, or before its end was planned"
        )
    return plan, plan.end


def write_plan(directory: Path, plan: Plan) -> None:
    """Writes the plan of a run into its directory."""
    content = json.dumps(plan.to_json(), indent=2) + "\n"
    replace_file(directory / PLAN_FILE, content.encode())
