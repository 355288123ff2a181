import math
import re

import numpy as np
import pytest

from azjax.checks import check_bool, check_choice, check_int, check_number, check_seed


@pytest.mark.parametrize("value", [1, 2, 3])
def test_an_int_within_its_limits_passes(value):
    check_int("size", value, 1, 3)
    check_int("size", value, 1)


@pytest.mark.parametrize("value", [0, 4, 2.0, True, None, "2", math.nan, np.int64(2)])
def test_check_int_rejects_other_values(value):
    message = f"size must be an int from 1 to 3: {value!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_int("size", value, 1, 3)


def test_an_int_can_have_no_upper_limit():
    with pytest.raises(ValueError, match="size must be an int >= 1: 0"):
        check_int("size", 0, 1)


@pytest.mark.parametrize(
    ("limits", "allowed", "refused", "text"),
    [
        ({"above": 0}, (0.1, 3), (0, -1.0), "a finite number > 0"),
        ({"at_least": 0}, (0, 0.0, 2), (-0.1,), "a finite number >= 0"),
        ({"at_least": 0, "below": 1}, (0, 0.9), (-1, 1), "a number >= 0 and < 1"),
        ({"above": 0, "at_most": 1}, (0.1, 1), (0, 1.1), "a number > 0 and <= 1"),
        ({"at_least": 0, "at_most": 1}, (0, 1), (-0.1, 2), "a number from 0 to 1"),
    ],
)
def test_a_number_has_limits(limits, allowed, refused, text):
    for value in allowed:
        check_number("rate", value, **limits)
    for value in (*refused, math.nan, math.inf, -math.inf, 10**400, True, None, "1"):
        message = f"rate must be {text}: {repr(value)[:80]}"
        with pytest.raises(ValueError, match=re.escape(message)):
            check_number("rate", value, **limits)


@pytest.mark.parametrize("value", [1, 0, None, "true", np.True_])
def test_only_a_bool_is_accepted_as_a_bool(value):
    check_bool("swap", True)
    check_bool("swap", False)
    with pytest.raises(ValueError, match="swap must be True or False: "):
        check_bool("swap", value)


@pytest.mark.parametrize("value", ["c", "", None, 1, ["a"]])
def test_a_choice_is_one_of_those_allowed(value):
    check_choice("form", "a", ("a", "b"))
    with pytest.raises(ValueError, match="form must be a or b: "):
        check_choice("form", value, ("a", "b"))


@pytest.mark.parametrize("value", [-1, 2**32, 1.0, True])
def test_a_seed_has_32_bits(value):
    check_seed("--seed", 2**32 - 1)
    with pytest.raises(ValueError, match=r"--seed must be an int from 0 to 2\*\*32 -"):
        check_seed("--seed", value)
