"""Sphinx extension: formats the docstrings of azjax.

A docstring of azjax lists fields as lines `name: meaning`, with indented continuation
lines; these lines become a bullet list. Fenced code becomes a code block.
"""

import re
from typing import Any

from sphinx.application import Sphinx

FIELD = re.compile(r"^([a-z_]\w*(?:, (?:[a-z_]\w*|\.\.\.))*): (.*)")
ALIAS = "Alias for field number"


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the handlers."""
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}


def process(  # noqa: PLR0917, the arguments that Sphinx passes
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Changes the lines of a docstring in place."""
    del app, what, name, obj, options
    lines[:] = with_field_list(with_code_blocks(lines))


def with_code_blocks(lines: list[str]) -> list[str]:
    """Returns the lines, with each fenced block of Python as a code block."""
    changed: list[str] = []
    is_code = False
    for line in lines:
        if line.strip() == "```python":
            is_code = True
            changed += [".. code-block:: python", ""]
        elif line.strip() == "```":
            is_code = False
            changed.append("")
        else:
            changed.append(f"   {line}" if is_code else line)
    return changed


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


def skip(  # noqa: PLR0917, as above
    app: Sphinx, what: str, name: str, obj: object, skipped: bool, options: object
) -> bool | None:
    """Leaves out the fields of named tuples, which the class docstring explains."""
    del app, what, name, skipped, options
    return True if (getattr(obj, "__doc__", "") or "").startswith(ALIAS) else None
