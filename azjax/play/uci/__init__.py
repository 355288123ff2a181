"""A UCI engine (Universal Chess Interface, 2006) for chess."""

from azjax.play.uci.engine import Engine

__all__ = ["Engine"]
