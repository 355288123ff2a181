"""The web server of `azjax serve`.

`app`, `connection` and `running` need the extra `web`; the other modules do not.
"""

from azjax.play.server.catalog import Catalog, make_catalog
from azjax.play.server.limits import ServerLimits
from azjax.play.server.registry import PlayerRegistry, compile_games, start_compiling

__all__ = [
    "Catalog",
    "PlayerRegistry",
    "ServerLimits",
    "compile_games",
    "make_catalog",
    "start_compiling",
]
