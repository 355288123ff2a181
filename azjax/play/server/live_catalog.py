"""The catalog with the runs that exist now."""

import threading
import time

from azjax.games import Game
from azjax.networks import Parts
from azjax.play.server.catalog import Catalog, GameOffer, PlayerOffer
from azjax.play.server.messages import shown
from azjax.play.server.runs import RunInfo

REFRESH_INTERVAL = 2.0  # seconds


class LiveCatalog:
    """Games, players and runs, read again every `REFRESH_INTERVAL`; thread-safe.

    Args:
        catalog: the games, and the directory with runs.
    """

    def __init__(self, catalog: Catalog):
        self._catalog = catalog
        self._lock = threading.Lock()
        self._runs: dict[str, RunInfo] = {}
        self._games: dict[str, GameOffer] = {}
        self._refreshed_at = -REFRESH_INTERVAL

    @property
    def parts(self) -> Parts | None:
        """The operator's modules for custom networks."""
        return self._catalog.parts

    def runs(self) -> dict[str, RunInfo]:
        """Returns the runs by key."""
        self._refresh()
        return self._runs

    def games(self) -> dict[str, GameOffer]:
        """Returns the offered games by key."""
        self._refresh()
        return self._games

    def key_of(self, game: Game) -> str | None:
        """Returns the key of an offered game, None if it is not offered."""
        key = self._catalog.key_of(game)
        return key if key in self.games() else None

    def find(self, game: str, player: str) -> tuple[GameOffer, PlayerOffer]:
        """Returns a game and one of its players.

        Args:
            game: its key.
            player: its name.

        Raises:
            ValueError: the game or the player is unknown.
        """
        offer = self.games().get(game)
        if offer is None:
            known = ", ".join(self.games())
            raise ValueError(f"unknown game {shown(game)}; known games: {known}")
        if player not in offer.players:
            known = ", ".join(offer.players)
            raise ValueError(f"unknown player {shown(player)}; known players: {known}")
        return offer, offer.players[player]

    def _refresh(self) -> None:
        with self._lock:
            if time.monotonic() - self._refreshed_at < REFRESH_INTERVAL:
                return
            self._runs = self._catalog.runs()
            self._games = self._catalog.with_runs(self._runs)
            self._refreshed_at = time.monotonic()
