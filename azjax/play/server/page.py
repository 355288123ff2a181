"""The files of the page, read into memory: no path is ever taken from a request."""

import importlib.resources
import mimetypes
from pathlib import Path
from typing import NamedTuple

NOT_FOR_VISITORS = ("README.md", "SHA256SUMS", "package.json")
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".gz": "application/gzip"}


class PageFile(NamedTuple):
    """A file with its type as HTTP names it."""

    content: bytes
    media_type: str


def read_page() -> dict[str, PageFile]:
    """Returns the files of the page by their relative paths, such as `app.js`."""
    folder = Path(str(importlib.resources.files("azjax.play") / "web"))
    return {
        path.relative_to(folder).as_posix(): PageFile(path.read_bytes(), _type(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_FOR_VISITORS
    }


def _type(path: Path) -> str:
    known = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    return known or "text/plain"
