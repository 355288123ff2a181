"""Sweeps: runs with all combinations, or random ones, of the settings in a file."""

import dataclasses
import itertools
import math
import random
import re
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from azjax.files import open_regular
from azjax.settings import check_int, flattened
from azjax.training.config import RunConfig
from azjax.training.run.directory import CHECKPOINTS
from azjax.training.run.metrics import METRICS_FILE, iterate_metrics
from azjax.training.run.open_run import length_of
from azjax.training.run.schedule import read_schedule

MAX_SWEEP_BYTES = 2**20
MAX_RUNS = 1000
MAX_NAME = 200  # of a run, which is the name of its directory (characters)
ONLY_RUN = "run"  # name where no setting has a list of values

_NUMBERS = ("samples", "sample_seed")  # of the file, besides settings
_NOT_SWEPT = ("game", "run-dir")  # the arguments of the command
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.=,_-]+")

Values = Mapping[str, Any]  # by option


@dataclasses.dataclass(frozen=True)
class SweepRun:
    """A run of a sweep.

    name: its values of the settings that the file gives as lists.
    options: of `azjax train`, `--name=value` or `--name` and several values.
    """

    name: str
    options: tuple[str, ...]


def read_sweep(path: Path) -> list[SweepRun]:
    """Reads the runs of a sweep from a TOML file, which is checked.

    An entry of the file is a setting by its name, with one value or a list of values; a
    value that is itself a list is one of several numbers. With `samples` and
    `sample_seed` so many different combinations are drawn at random; a larger number
    keeps those of a smaller one.
    """
    with open_regular(path, MAX_SWEEP_BYTES) as file:
        content = file.read(MAX_SWEEP_BYTES)
    try:
        table = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from None
    try:
        return _runs(table)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _runs(table: dict[str, Any]) -> list[SweepRun]:
    given = {name: table.pop(name) for name in _NUMBERS if name in table}
    settings: dict[str, Any] = {}
    for setting, values in flattened(table):
        name = setting.replace("_", "-")
        if name in settings:
            raise ValueError(f"{name} is given twice")
        if name in _NOT_SWEPT:
            raise ValueError(f"{name} must not be in the file: the command sets it")
        settings[name] = values
    if not settings:
        raise ValueError("it has no settings")
    swept = [name for name, values in settings.items() if isinstance(values, list)]
    choices = [_choices(name, values) for name, values in settings.items()]
    runs = [
        SweepRun(
            _name(swept, combination),
            tuple(
                option
                for name, value in combination.items()
                for option in (
                    (f"--{name}", *_texts(value))
                    if isinstance(value, list)
                    else (f"--{name}={_texts(value)[0]}",)
                )
            ),
        )
        for combination in (
            dict(zip(settings, values, strict=True))
            for values in _combinations(choices, given)
        )
    ]
    names = [run.name for run in runs]
    for name in names:
        if len(name) > MAX_NAME:
            raise ValueError(
                f"the name of a run has more than {MAX_NAME} letters: {name}"
            )
        if names.count(name) > 1:
            raise ValueError(
                f"two runs would have the name {name}: their values must differ"
            )
    return runs


def _choices(name: str, values: Any) -> Sequence[Any]:
    """Returns the values of a setting, checked."""
    choices = values if isinstance(values, list) else [values]
    for choice in choices:
        items = choice if isinstance(choice, list) else [choice]
        for item in items:
            if not isinstance(item, bool | int | float | str):
                raise ValueError(
                    f"{name} must be numbers, strings, or true or false: {item!r}"
                )
            if isinstance(item, str) and item.startswith("-"):
                raise ValueError(f"a value of {name} begins with -: {item!r}")
    if not choices:
        raise ValueError(f"{name} has no values")
    return choices


def _combinations(
    choices: Sequence[Sequence[Any]], given: Mapping[str, Any]
) -> Iterator[Sequence[Any]]:
    """Yields all combinations of a value of each setting, or `samples` of them."""
    total = math.prod(map(len, choices))
    if not given:
        if total > MAX_RUNS:
            raise ValueError(f"{total} runs are more than {MAX_RUNS}: give samples")
        yield from itertools.product(*choices)
        return
    for name in _NUMBERS:
        if name not in given:
            raise ValueError(f"{' and '.join(_NUMBERS)} belong together: give {name}")
    check_int("samples", given["samples"], 1, min(total, MAX_RUNS))
    check_int("sample_seed", given["sample_seed"], 0)
    generator = random.Random(given["sample_seed"])
    seen: set[int] = set()
    while len(seen) < given["samples"]:
        number = place = generator.randrange(total)
        if number in seen:
            continue
        seen.add(number)
        combination = []
        for values in choices:
            place, index = divmod(place, len(values))
            combination.append(values[index])
        yield combination


def _name(swept: Sequence[str], combination: Values) -> str:
    """Returns the values of the swept settings, by the last parts of their names where
    these differ."""
    last = [name.rpartition(".")[2] for name in swept]
    texts = []
    for name, part in zip(swept, last, strict=True):
        shown = part if last.count(part) == 1 else name
        texts.append(f"{shown}={'-'.join(_texts(combination[name]))}")
    return _NOT_IN_NAMES.sub("_", ",".join(texts)) or ONLY_RUN


def _texts(value: Any) -> list[str]:
    """Returns a value as words of the command line."""
    items = value if isinstance(value, list) else [value]
    return [
        str(item).lower() if isinstance(item, bool) else str(item) for item in items
    ]


def is_finished(config: RunConfig) -> bool:
    """Returns whether a run has reached its end, with an evaluation and a checkpoint
    there."""
    directory = config.directory
    try:
        schedule = read_schedule(directory)
        (last,) = deque(iterate_metrics(directory / METRICS_FILE), maxlen=1)
        iteration, kind = int(last["iteration"]), last["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return (
        kind == "evaluation"
        and schedule.length == length_of(config)
        and schedule.progress(iteration) >= 1
        and (directory / CHECKPOINTS / str(iteration)).exists()
    )
