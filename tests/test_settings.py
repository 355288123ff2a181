import dataclasses
import json
import math
import re
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest

from azjax.settings import (
    FORMAT,
    Distinct,
    Seed,
    Settings,
    Within,
    check,
    check_format,
    from_json,
)
from azjax.training import TrainConfig, preset
from azjax.training.config import QConfig

Size = Annotated[int, Within(1, 3)]
Count = Annotated[int, Within(ge=1)]
STRANGE = (math.nan, math.inf, -math.inf, 10**400, True, "1")


@pytest.mark.parametrize(
    ("hint", "allowed", "refused", "text"),
    [
        (Size, (1, 3), (0, 4, 2.0, None, np.int64(2), *STRANGE), "an int from 1 to 3"),
        (Count, (1, 2**31 - 1), (0, None), "an int >= 1"),
        (Count, (), (2**31, 10**400), "an int >= 1 and <= 2147483647"),
        (Seed, (0, 2**32 - 1), (-1, 2**32, 1.0), "an int from 0 to 2**32 - 1"),
        *(
            (Annotated[float, within], allowed, (*refused, None, *STRANGE), text)
            for within, allowed, refused, text in (
                (Within(gt=0), (0.1, 3), (0, -1.0), "a finite number > 0"),
                (Within(ge=0), (0, 0.0, 2), (-0.1,), "a finite number >= 0"),
                (Within(ge=0, lt=1), (0, 0.9), (-1, 1), "a number >= 0 and < 1"),
                (Within(gt=0, le=1), (0.1, 1), (0, 1.1), "a number > 0 and <= 1"),
                (Within(0, 1), (0, 1), (-0.1, 2), "a number from 0 to 1"),
            )
        ),
        (
            Annotated[float | None, Within(ge=0)],
            (None, 0),
            (-1,),
            "a finite number >= ",
        ),
        (bool, (True, False), (1, 0, None, "true", np.True_), "True or False"),
        (Literal["a", "b"], ("a", "b"), ("c", "", None, 1, ["a"]), "a or b"),
        (str, ("", None), (), ""),  # other types are not checked
    ],
)
def test_a_value_has_the_limits_of_its_type(hint, allowed, refused, text):
    for value in allowed:
        check("size", value, hint)
    for value in refused:
        with pytest.raises(
            ValueError, match=rf"^size must be {re.escape(text)}"
        ) as error:
            check("size", value, hint)
        assert str(error.value).endswith(f": {repr(value)[:80]}") or value == 10**400


def test_a_value_of_thousands_of_digits_is_named():
    with pytest.raises(ValueError, match=r"size must be .*: a number of 16610 bits"):
        check("size", 10**5000, Count)


def test_the_values_of_a_tuple_are_distinct():
    check("names", ("a", "b"), Annotated[tuple[str, ...], Distinct()])
    with pytest.raises(ValueError, match="names has 'a' twice"):
        check("names", ("a", "a"), Annotated[tuple[str, ...] | None, Distinct()])


def test_each_number_of_a_tuple_has_the_limits():
    check("size", (1, 3), Annotated[tuple[int, ...], Within(1, 3)])
    with pytest.raises(ValueError, match="size must be an int from 1 to 3: 4"):
        check("size", (1, 4), Annotated[tuple[int, ...] | None, Within(1, 3)])


@dataclasses.dataclass(frozen=True)
class Part(Settings):
    section: ClassVar[str] = "part."

    size: Size = 1
    form: Literal["a", "b"] = "a"


@dataclasses.dataclass(frozen=True)
class Larger(Part):
    is_fast: bool = False


def test_settings_check_their_fields_and_name_their_section():
    assert Larger(2, "b", is_fast=True).size == 2
    for changes, message in (
        ({"size": 0}, "part.size must be an int from 1 to 3: 0"),
        ({"form": "c"}, "part.form must be a or b: 'c'"),
        ({"is_fast": 1}, "part.is_fast must be True or False: 1"),
    ):
        with pytest.raises(ValueError, match=message):
            Larger(**changes)


def values(**changes):
    config = TrainConfig(game="tic_tac_toe", iterations=3)
    return json.loads(json.dumps(config.to_json())) | changes


def test_the_settings_survive_json():
    config = preset("accelerator", "hex:5", iterations=2, run_dir="somewhere")
    content = json.loads(json.dumps(config.to_json()))
    assert from_json(TrainConfig, content) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "1"}, "seed has the wrong type: '1'"),
        ({"seed": True}, "seed has the wrong type: True"),
        ({"iterations": 1.5}, "iterations has the wrong type: 1.5"),
        ({"learner": {"batch_size": None}}, "learner.batch_size has the wrong type"),
        ({"learner": {"uses": 1.0}}, "unknown setting learner.uses"),
        ({"learner": []}, "learner must be an object: "),
        ({"network": {"trunk": "dense"}}, "network.trunk must be an object: 'dense'"),
        ({"network": {"trunk": {"name": "tower"}}}, "'tower'; known trunks are"),
        ({"network": {"trunk": {"name": []}}}, "unknown trunk"),
        ({"network": {"trunk": {"name": "conv", "width": 3}}}, "network.trunk.width"),
        ({"self_play": {"num_simulations": [1, "2"]}}, "num_simulations has the wrong"),
        ({"self_play": {"num_games": 0}}, "self_play.num_games must be an int >= 1: 0"),
        ({"x" * 10**6: 1}, "unknown setting x{40}$"),
    ],
)
def test_unknown_settings_raise(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        from_json(TrainConfig, values(**changes))
    assert len(str(error.value)) < 200


def test_a_tuple_may_be_optional():
    values = {"game": "tic_tac_toe", "network": {"hidden": [8, 4]}}
    assert from_json(QConfig, values).network.hidden == (8, 4)
    values["network"] = {"hidden": None}
    assert from_json(QConfig, values).network.hidden is None
    with pytest.raises(ValueError, match=r"network.hidden has the wrong type: '8'"):
        from_json(QConfig, values | {"network": {"hidden": ["8"]}})


@pytest.mark.parametrize(
    "found", [FORMAT + 1, 0, -1, True, 1.0, "1", None, "1" * 10**6]
)
def test_another_format_is_refused_in_one_line(found):
    assert check_format({"format": FORMAT}) == {"format": FORMAT}
    with pytest.raises(ValueError, match=f"reads format {FORMAT}$") as error:
        check_format({"format": found, "game": "hex"})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("content", [[], "format", None, 1])
def test_a_file_that_is_not_an_object_is_refused(content):
    with pytest.raises(ValueError, match="it is not a JSON object"):
        check_format(content)
