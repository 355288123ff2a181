"""A GTP engine (Go Text Protocol, version 2) for all games."""

from azjax.play.gtp.engine import Engine, serve
from azjax.play.gtp.protocol import Inbox

__all__ = ["Engine", "Inbox", "serve"]
