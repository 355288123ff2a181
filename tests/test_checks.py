import math
import re

import numpy as np
import pytest

from azjax.checks import (
    check_bool,
    check_int,
    check_number,
    check_seed,
    printable,
    quoted,
)


def test_an_int_has_limits():
    for value in 1, 2, 3:
        check_int("size", value, 1, 3)
        check_int("size", value, 1)
    for value in 0, 4, 2.0, True, None, "2", math.nan, np.int64(2):
        message = f"size must be an int from 1 to 3: {value!r}"
        with pytest.raises(ValueError, match=re.escape(message)):
            check_int("size", value, 1, 3)
    with pytest.raises(ValueError, match="size must be an int >= 1: 0"):
        check_int("size", 0, 1)
    for value in 2**31, 10**400, 10**5000:
        with pytest.raises(
            ValueError, match=r"^size must be an int >= 1 and <= 2147483647: "
        ):
            check_int("size", value, 1)


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


def test_bools_choices_and_seeds_are_those_allowed():
    check_bool("swap", True)
    check_bool("swap", False)
    for value in 1, 0, None, "true", np.True_:
        with pytest.raises(ValueError, match="swap must be True or False: "):
            check_bool("swap", value)
    for value in -1, 2**32, 1.0, True:
        with pytest.raises(ValueError, match=r"--seed must be an int from 0 to 2\*\*"):
            check_seed("--seed", value)


def test_values_of_any_origin_are_shown_in_one_short_line():
    assert quoted("a\x1b") == r"'a\x1b'"
    for value in "x" * 10**6, b"x" * 10**6, ["x"] * 10**4, {"a": 10**5000}:
        assert len(quoted(value)) <= 83
    assert printable("a\tb\nc\x1b[31m\x9b\u202e\ud800é") == "a b c?[31m???é"
    assert printable("abc", 2) == "ab..."
    assert printable("ab", 2) == "ab"
