"""A GTP engine (Go Text Protocol, version 2) for all games."""

from azjax.play.gtp.engine import Engine
from azjax.play.gtp.protocol import Inbox
from azjax.play.gtp.server import serve

__all__ = ["Engine", "Inbox", "serve"]
