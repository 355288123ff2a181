"""Sphinx extension: writes the exported page of a shipped player beside the site.

The home page shows it in a frame, as `play/index.html`.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from azjax import games
from azjax.play.web_export import export_web
from azjax.players import load_run

GAME = "connect_four"


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the handler."""
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True}


def write_page(app: Sphinx, error: Exception | None) -> None:
    """Writes the page after a build of HTML."""
    if error is None and app.builder.format == "html":
        player = load_run("pretrained", games.make(GAME))
        export_web(player, Path(app.outdir) / "play", name="AlphaZero")
