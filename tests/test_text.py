from azjax.text import printable, quoted


def test_values_of_any_origin_are_shown_in_one_short_line():
    assert quoted("a\x1b") == r"'a\x1b'"
    for value in "x" * 10**6, b"x" * 10**6, ["x"] * 10**4, {"a": 10**5000}:
        assert len(quoted(value)) <= 83
    assert printable("a\tb\nc\x1b[31m\x9b\u202e\ud800é") == "a b c?[31m???é"
    assert printable("abc", 2) == "ab..."
    assert printable("ab", 2) == "ab"
