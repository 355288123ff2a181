"""Every game and player in the browser: `azjax serve`."""

from azjax.play.server.app import make_app
from azjax.play.server.house import House
from azjax.play.server.limits import Limits
from azjax.play.server.offers import Offers, make_offers
from azjax.play.server.running import listen, run_server

__all__ = [
    "House",
    "Limits",
    "Offers",
    "listen",
    "make_app",
    "make_offers",
    "run_server",
]
