"""The types of the page's files, as HTTP names them."""

import mimetypes
from pathlib import PurePosixPath

TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".gz": "application/gzip"}


def media_type(path: str) -> str:
    """Returns the type of a file."""
    suffix = PurePosixPath(path).suffix
    return TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "text/plain"
