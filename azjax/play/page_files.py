"""The files of the page."""

import importlib.resources
import mimetypes
from pathlib import Path, PurePosixPath

RULES = "games"
SHARED_RULES = "rows"
UNSERVED = ("README.md", "SHA256SUMS", "package.json")
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".gz": "application/gzip"}


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
