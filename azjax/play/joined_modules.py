"""Modules of the page joined into one, for those who want a single file."""

import re
from pathlib import Path

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE
)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def joined(folder: Path, entry: str) -> str:
    """Returns the text of one module that does what `entry` and its imports do.

    Each module becomes a function, called once, that returns what it exports, so that
    the names of one mean nothing to another. `entry` comes last and may have a default
    export.

    Args:
        folder: where the modules lie; they import from each other as
            `import { name, ... } from "./file.js";` and export declarations.
        entry: the module that is wanted.

    Raises:
        ValueError: a module imports or exports in another way, or in a circle.
    """
    names = _in_order(folder, entry, ())
    parts = [_as_function(folder, name) for name in names if name != entry]
    text = _with_known_imports((folder / entry).read_text())
    _check(entry, text.replace("export default ", "", 1))
    return "\n".join([*parts, text])


def _in_order(folder: Path, name: str, importers: tuple[str, ...]) -> list[str]:
    """Returns a module after all that it imports, each once."""
    if name in importers:
        raise ValueError(f"modules import in a circle: {' '.join([*importers, name])}")
    ordered: dict[str, None] = {}
    for _, imported in _IMPORT.findall((folder / name).read_text()):
        ordered |= dict.fromkeys(_in_order(folder, imported, (*importers, name)))
    return [*ordered, name]


def _as_function(folder: Path, name: str) -> str:
    text = _with_known_imports((folder / name).read_text())
    exports = [exported for _, exported in _EXPORT.findall(text)]
    text = _EXPORT.sub(r"\1", text)
    _check(name, text)
    returned = f"return {{ {', '.join(exports)} }};"
    return f"const {_variable(name)} = (() => {{\n{text}{returned}\n}})();\n"


def _with_known_imports(text: str) -> str:
    return _IMPORT.sub(
        lambda found: f"const {found[1]} = {_variable(found[2])};\n", text
    )


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"


def _check(name: str, text: str) -> None:
    left = _LEFT.search(text)
    if left is not None:
        raise ValueError(f"{name} cannot be joined: {left[0]}")
