"""The files of the page, also with its JavaScript modules bundled into one."""

import importlib.resources
import mimetypes
import re
from pathlib import Path, PurePosixPath

from azjax.text import quoted

RULES = "games"
SHARED_RULES = "rows"
UNSERVED = ("README.md", "SHA256SUMS", "package.json")
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".gz": "application/gzip"}
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE
)
_UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def page_files() -> Path:
    """Returns the directory of the page."""
    return Path(str(importlib.resources.files("azjax.play") / "web"))


def read_page() -> dict[str, bytes]:
    """Returns the files that browsers load, by relative path."""
    folder = page_files()
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in UNSERVED
    }


def media_type(path: str) -> str:
    """Returns the media type of a file."""
    suffix = PurePosixPath(path).suffix
    return TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "text/plain"


def browser_games() -> list[str]:
    """Returns the games with rules in JavaScript, sorted."""
    names = {path.stem for path in (page_files() / RULES).glob("*.js")}
    return sorted(names - {SHARED_RULES})


def check_browser_rules(game: object) -> None:
    """Checks that exported pages have rules for a game, given by its name."""
    if game not in browser_games():
        raise ValueError(
            f"the exported page has rules for {' and '.join(browser_games())} only, "
            f"not for {quoted(game)}: `azjax serve` plays it in the browser with the "
            "rules in Python, a game of your own by `python FILE serve`"
        )


def joined(folder: Path, entry: str) -> str:
    """Returns a module with the code of `entry` and all its imports.

    Each imported module becomes a function, called once, that returns its exports; this
    keeps their names apart. `entry` comes last and may have a default export.

    Args:
        folder: folder of the modules. They must import by
            `import { name, ... } from "./file.js";` and export declarations only.
        entry: file name of the main module.

    Raises:
        ValueError: a module imports or exports in another form, or imports in a cycle.
    """
    names = _in_order(folder, entry, ())
    parts = []
    for name in names[:-1]:
        text = _with_known_imports((folder / name).read_text())
        exports = [exported for _, exported in _EXPORT.findall(text)]
        text = _EXPORT.sub(r"\1", text)
        _check(name, text)
        returned = f"return {{ {', '.join(exports)} }};"
        parts.append(f"const {_variable(name)} = (() => {{\n{text}{returned}\n}})();\n")
    text = _with_known_imports((folder / entry).read_text())
    _check(entry, text.replace("export default ", "", 1))
    return "\n".join([*parts, text])


def _in_order(folder: Path, name: str, importers: tuple[str, ...]) -> list[str]:
    """Returns a module after its imports, without duplicates."""
    if name in importers:
        raise ValueError(f"modules import in a cycle: {' '.join([*importers, name])}")
    ordered: dict[str, None] = {}
    for _, imported in _IMPORT.findall((folder / name).read_text()):
        ordered |= dict.fromkeys(_in_order(folder, imported, (*importers, name)))
    return [*ordered, name]


def _with_known_imports(text: str) -> str:
    return _IMPORT.sub(
        lambda found: f"const {found[1]} = {_variable(found[2])};\n", text
    )


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"


def _check(name: str, text: str) -> None:
    unknown = _UNKNOWN.search(text)
    if unknown is not None:
        raise ValueError(f"{name} cannot be joined: {unknown[0]}")
