"""Names and values of any origin as text, for messages of one line."""

import difflib
from collections.abc import Iterable


def quoted(value: object, most: int = 80) -> str:
    """Returns the `repr` of a value, cut to `most` characters."""
    try:
        text = repr(value[: most + 1] if isinstance(value, str | bytes) else value)
    except (ValueError, RecursionError):  # an int of more than 4,300 digits
        is_int = isinstance(value, int)
        text = f"a number of {value.bit_length()} bits" if is_int else "?"
    return text if len(text) <= most else f"{text[:most]}..."


def printable(text: str, most: int | None = None) -> str:
    """Returns a text as one line without control characters, which could manipulate a
    terminal; cut to `most` characters."""
    if most is not None and len(text) > most:
        text = f"{text[:most]}..."
    text = text.replace("\n", " ").replace("\t", " ")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean NAME?` for the known name that is closest, an empty text
    where none is close."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
