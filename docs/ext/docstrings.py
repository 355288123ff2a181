"""Sphinx extension: formats the docstrings of azjax.

A class of azjax lists its fields as lines `name: meaning`, with indented continuation
lines. These lines become a bullet list.
"""

import re
from typing import Any

from sphinx.application import Sphinx

FIELD = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): (.*)")
ALIAS = "Alias for field number"


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the handlers."""
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}


def process(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Changes the lines of a docstring in place."""
    del app, name, obj, options
    if what in ("class", "exception", "module"):
        lines[:] = with_field_list(lines)


def with_field_list(lines: list[str]) -> list[str]:
    """Returns the lines, with each paragraph of fields as a bullet list.

    A paragraph of fields starts with a line `name: meaning`, after an empty line.
    """
    changed: list[str] = []
    is_list = False
    for index, line in enumerate(lines):
        match = FIELD.match(line)
        starts = index > 0 and not lines[index - 1].strip()
        if match and (is_list or starts):
            is_list = True
            changed.append(f"* ``{match[1]}``: {match[2]}")
        elif not line.strip():
            is_list = False
            changed.append(line)
        elif is_list:
            changed.append(f"  {line.strip()}")
        else:
            changed.append(line)
    return changed


def skip(
    app: Sphinx, what: str, name: str, obj: object, skipped: bool, options: object
) -> bool | None:
    """Leaves out the fields of named tuples, which the class docstring explains."""
    del app, what, name, skipped, options
    return True if (getattr(obj, "__doc__", "") or "").startswith(ALIAS) else None
