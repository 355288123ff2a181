"""The web server of `azjax serve`.

`app`, `connection`, `guard` and `running` need the extra `web`; the other modules do
not.
"""

from azjax.play.server.catalog import Catalog, make_catalog
from azjax.play.server.limits import Limits
from azjax.play.server.registry import PlayerRegistry
from azjax.play.server.warming import Warmer

__all__ = ["Catalog", "Limits", "PlayerRegistry", "Warmer", "make_catalog"]
