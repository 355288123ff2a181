"""The files of the page as they ship with azjax."""

import importlib.resources
import mimetypes
from pathlib import Path, PurePosixPath

RULES = "games"
SHARED_RULES = "rows"
NOT_FOR_VISITORS = ("README.md", "SHA256SUMS", "package.json")
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".gz": "application/gzip"}


def page_files() -> Path:
    """Returns the directory of the page."""
    return Path(str(importlib.resources.files("azjax.play") / "web"))


def read_page() -> dict[str, bytes]:
    """Returns the files that visitors load, by their relative paths as `app.js`."""
    folder = page_files()
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_FOR_VISITORS
    }


def media_type(path: str) -> str:
    """Returns the type of a file, as HTTP names it."""
    suffix = PurePosixPath(path).suffix
    return TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "text/plain"


def browser_games() -> list[str]:
    """Returns the games whose rules the page knows, sorted."""
    names = {path.stem for path in (page_files() / RULES).glob("*.js")}
    return sorted(names - {SHARED_RULES})
