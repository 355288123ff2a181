"""The plan of a run: which share of it is over after each iteration."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from azjax.players.weights import open_regular
from azjax.remote import Directory
from azjax.training.metrics import replace_file

PLAN_FILE = "plan.json"
MAX_PLAN_BYTES = 2**20
_MAX_ITERATIONS = 2**31 - 1


class Entry(NamedTuple):
    """A line of a plan, which holds until the next one.

    iteration: from which it holds.
    share: of the run that is over then, in [0, 1].
    end: the iteration with which the run ends; None if that is not known yet.
    """

    iteration: int
    share: float
    end: int | None


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which share of a run is over after each iteration: what schedules follow.

    The share rises by the same step with every iteration, so that it is the share of
    the positions that have been played, until a line of the plan changes the end. While
    no end is known (in a run of minutes, before one is planned) the share is that of
    the last line, at first 0.

    length: of the run when its last line was written, (`minutes` or `iterations`, how
        many).
    entries: by their iterations, at least one.
    """

    length: tuple[str, float]
    entries: tuple[Entry, ...]

    def share(self, iteration: int) -> float:
        """Returns the share of the run that is over after so many iterations."""
        entry = next(entry for entry in self.entries[::-1] if entry[0] <= iteration)
        if entry.end is None:
            return entry.share
        if iteration >= entry.end:
            return 1.0
        done = (iteration - entry.iteration) / (entry.end - entry.iteration)
        return entry.share + (1 - entry.share) * done

    @property
    def end(self) -> int | None:
        """The iteration with which the run ends, as far as it is known."""
        return self.entries[-1].end

    def ending(self, iteration: int, end: int | None) -> "Plan":
        """Returns the plan with another end, from an iteration on."""
        return self._continued(Entry(iteration, self.share(iteration), end))

    def at(self, iteration: int, share: float) -> "Plan":
        """Returns the plan with this share over after an iteration, without an end."""
        return self._continued(Entry(iteration, share, None))

    def extended(
        self, length: tuple[str, float], iteration: int, share: float, end: int | None
    ) -> "Plan":
        """Returns the plan of a run that becomes longer or shorter, of which `share` is
        over after so many iterations."""
        entry = Entry(iteration, share, end)
        return dataclasses.replace(self._continued(entry), length=length)

    def _continued(self, entry: Entry) -> "Plan":
        kept = (old for old in self.entries if old.iteration < entry.iteration)
        return dataclasses.replace(self, entries=(*kept, entry))

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as `json.dumps` takes it."""
        return {
            "length": self.length,
            "entries": [entry._asdict() for entry in self.entries],
        }


def new_plan(length: tuple[str, float]) -> Plan:
    """Returns the plan of a new run; that of a run of minutes has no end yet.

    Args:
        length: (`minutes` or `iterations`, how many).
    """
    unit, number = length
    end = int(number) if unit == "iterations" else None
    return Plan(length, (Entry(0, 0.0, end),))


def extended_plan(
    plan: Plan, length: tuple[str, float], iteration: int, seconds: float
) -> Plan:
    """Returns the plan of a run that is given another length.

    The share that is over is the iterations done, or the minutes used, divided by the
    new length: schedules continue where those of a run of that length would be. The
    learning rate rises again to that run's cosine (compare the warm restarts of
    Loshchilov and Hutter 2017, "SGDR").

    Args:
        plan: until now.
        length: (`minutes` or `iterations`, how many).
        iteration: done.
        seconds: used.

    Raises:
        ValueError: the run is longer already.
    """
    unit, number = length
    used = iteration if unit == "iterations" else seconds / 60
    if number <= used:
        raise ValueError(
            f"{unit} must be more than the {used:.5g} that the run has used to go on "
            f"with it: {number:g}"
        )
    end = int(number) if unit == "iterations" else None
    return plan.extended(length, iteration, used / number, end)


def plan_from_json(content: object) -> Plan:
    """Returns the plan from JSON of any origin, in the form of `Plan.to_json`.

    Raises:
        ValueError: it is no plan.
    """
    try:
        return _plan_from_json(content)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("it is no plan of a run") from error


def _plan_from_json(content: Any) -> Plan:
    unit, number = content["length"]
    entries = tuple(Entry(**entry) for entry in content["entries"])
    iterations = [entry.iteration for entry in entries]
    ends = [entry.end for entry in entries if entry.end is not None]
    numbers = (number, *(entry.share for entry in entries))
    if not (
        unit in ("minutes", "iterations")
        and all(type(value) in (int, float) for value in numbers)
        and 0 < number <= _MAX_ITERATIONS
        and all(0 <= entry.share <= 1 for entry in entries)
        and all(type(value) is int for value in (*iterations, *ends))
        and iterations == sorted(set(iterations))
        and iterations[:1] == [0]
        and all(entry.iteration <= (entry.end or math.inf) for entry in entries)
        and max(iterations + ends) <= _MAX_ITERATIONS
    ):
        raise ValueError("it is no plan of a run")
    return Plan((unit, number), entries)


def read_plan(directory: Directory) -> Plan:
    """Returns the plan of a run, in a run directory that may hold anything.

    Raises:
        ValueError: there is none, or it is damaged.
    """
    path = directory / PLAN_FILE
    try:
        with open_regular(path, MAX_PLAN_BYTES) as file:
            return plan_from_json(json.loads(file.read(MAX_PLAN_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ValueError(f"there is no plan to follow in {path}: {problem}") from None


def plan_to_follow(directory: Directory) -> tuple[Plan, int]:
    """Returns the plan of a run for another one to follow, and its last iteration.

    Raises:
        ValueError: as in `read_plan`, or the run was stopped before it had an end.
    """
    plan = read_plan(directory)
    if not plan.end:
        raise ValueError(
            f"the plan in {directory / PLAN_FILE} has no end, or no iteration: the run "
            "was stopped, or its time was over, before one was done"
        )
    return plan, plan.end


def write_plan(directory: Path, plan: Plan) -> None:
    """Writes the plan of a run into its directory."""
    content = json.dumps(plan.to_json(), indent=2) + "\n"
    replace_file(directory / PLAN_FILE, content.encode())
