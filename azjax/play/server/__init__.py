"""Every game and player in the browser: `azjax serve`.

`app` and `running` need the extra `web`; what is here, and all else, does not.
"""

from azjax.play.server.catalog import Catalog, make_offers
from azjax.play.server.house import House
from azjax.play.server.limits import Limits
from azjax.play.server.warming import Warmer

__all__ = ["Catalog", "House", "Limits", "Warmer", "make_offers"]
