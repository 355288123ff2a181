"""Suggestions for misspelled names."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean NAME?` for the known name that is closest, an empty text
    where none is close."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
