"""Players and rules, loaded on demand and shared by all clients, or compiled before.

The first use of a game or a player loads and compiles it, which takes seconds: call the
methods outside the event loop's thread, except where noted.
"""

import contextlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from azjax.play.game_description import Preview, describe_start
from azjax.play.server.catalog import (
    Catalog,
    GameOffer,
    LiveCatalog,
    PlayerOffer,
    load_offered,
)
from azjax.play.server.comparing import Comparisons
from azjax.play.server.describing import describe_position
from azjax.play.server.limits import Limits
from azjax.play.server.loaded_player import FileTimes, LoadedPlayer, SharedResources
from azjax.play.server.memory import CacheEntry, Evictable
from azjax.play.server.rules import Rules
from azjax.play.server.runs import one_line
from azjax.players.serialization import PLAYER_FILE
from azjax.players.simple import perfect_player

NICENESS = 10  # of the thread, on Linux
POLL_INTERVAL = 0.2  # between two checks for active clients (seconds)


class PlayerRegistry:
    """Caches of loaded players, compiled rules and previews; thread-safe.

    catalog: the games, players and runs that exist now.
    limits: limits of client requests.
    activity: open requests.
    comparisons: comparisons of runs.

    Args:
        catalog: the games, players and the directory with runs.
        limits: see above.
        seed: seed of the players' random choices; None draws one.
    """

    def __init__(self, catalog: Catalog, limits: Limits, seed: int | None = None):
        self.catalog = LiveCatalog(catalog)
        self.limits = limits
        self._resources = SharedResources(limits, seed)
        self.activity = self._resources.activity
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self._previews: dict[str, CacheEntry] = {}
        self._rules: dict[str, Rules] = {}
        self._players: dict[tuple[str, str], LoadedPlayer] = {}
        self.comparisons = Comparisons(self._keep)

    def is_ready(self, offer: GameOffer, player: PlayerOffer) -> bool:
        """Returns whether a game can start at once; does not block."""
        return offer.key in self._rules and self.loaded(offer, player) is not None

    def preview(self, offer: GameOffer) -> Preview:
        """Returns the description of a game before its rules are compiled."""
        with self._lock_of(("preview", offer.key)):
            entry = self._previews.get(offer.key)
            if entry is None:
                preview = describe_start(offer.game, offer.key)
                size = len(json.dumps(preview))
                entry = self._previews[offer.key] = CacheEntry(preview, 4 * size)
            self._keep(entry)
            return entry.value

    def rules(self, offer: GameOffer) -> Rules:
        """Returns the compiled rules of a game."""
        limits = self.limits
        with self._lock_of(offer.key):
            rules = self._rules.get(offer.key)
            if rules is None:
                rules = Rules(offer.game, limits.positions, limits.position_bytes)
                describe_position(rules, ())  # compiles the remaining small programs
                self._rules[offer.key] = rules
            rules.last_used = self._resources.memory.now()
            return rules

    def loaded(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer | None:
        """Returns a player if its newest version is loaded; does not block."""
        found = self._players.get((offer.key, player.name))
        if found is not None and found.file_times == _file_times(player.directory):
            return found
        return None

    def load(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer:
        """Returns a player; loads it unless its newest version is loaded.

        Raises:
            ValueError: it cannot be loaded, or its search needs too much memory.
        """
        with self._lock_of((offer.key, player.name)):
            found = self.loaded(offer, player)
            if found is None:
                found = self._load(offer, player)
            found.last_used = self._resources.memory.now()
            return found

    def _load(self, offer: GameOffer, player: PlayerOffer) -> LoadedPlayer:
        """Loads one player at a time, so that at most one exceeds the memory budget."""
        key = (offer.key, player.name)
        with self._loading:
            file_times = _file_times(player.directory)
            try:
                found = load_offered(player, offer.game, self.catalog.parts)
            except Exception as error:  # also out of memory: the server must go on
                # The client must not learn the path of the run.
                print(
                    f"azjax: {player.name} cannot be loaded: {one_line(error)}",
                    file=sys.stderr,
                )
                raise ValueError(f"{player.title} cannot be loaded") from None
            loaded = LoadedPlayer(
                offer.game,
                found,
                self._resources,
                file_times=file_times,
                previous=self._players.get(key),
                make_room=self._make_room,
            )
            self._players[key] = loaded
            try:
                self._make_room(loaded)
            except ValueError:
                self._players.pop(key, None)
                raise
            return loaded

    def _make_room(self, kept: LoadedPlayer) -> None:
        """Makes room for a player, unless all entries are busy; see `_keep`."""
        if not self._keep(kept):
            raise ValueError(
                "the server's memory is in use by other players; try again in a moment"
            )

    def _keep(self, used: Evictable) -> bool:
        """Notes the use of an entry, and evicts the least recently used other ones;
        returns whether the remaining ones fit."""
        memory = self._resources.memory
        used.last_used = memory.now()
        caches = self._players, self._rules, self._previews, self.comparisons.kept
        return memory.make_room(used, *caches)

    def describe(self, offer: GameOffer, player: PlayerOffer) -> dict[str, Any]:
        """Returns the description of a game and a player for the page.

        Raises:
            ValueError: the player cannot be loaded, or its search needs too much
                memory.
        """
        loaded = self.load(offer, player)
        self.rules(offer)  # first: the search may compile until the first move
        loaded.warm_up()
        return {**self.preview(offer).description, **loaded.describe(player.title)}

    def solver(self, offer: GameOffer) -> LoadedPlayer | None:
        """Returns the perfect player of a game, None if there is none."""
        solver = PlayerOffer("", "the solver", "perfect")  # no client can name it
        is_known = self.loaded(offer, solver) is not None
        if not is_known and perfect_player(offer.game) is None:
            return None
        return self.load(offer, solver)

    def close(self) -> None:
        """Closes all players; running decisions are dropped."""
        for player in self._players.values():
            player.close()
        self._resources.close()

    def _lock_of(self, key: object) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())


def _file_times(directory: Path | None) -> FileTimes:
    """Returns the modification times of a run's player, () without a run."""
    if directory is None:
        return ()
    with contextlib.suppress(OSError):
        return ((directory / "player" / PLAYER_FILE).stat().st_mtime_ns,)
    return ()


class Warmer:
    """Compiles all games in the background, each with its first player.

    It pauses between two compilations while clients are active: a new client competes
    with at most one compilation.

    Args:
        registry: the games and players.
        tell: called with a line of progress.
    """

    def __init__(self, registry: PlayerRegistry, tell: Callable[[str], object]):
        self._registry, self._tell = registry, tell
        self._is_closed = threading.Event()

    def start(self) -> None:
        """Starts the background thread."""
        threading.Thread(target=self._run, name="azjax-warm-up", daemon=True).start()

    def close(self) -> None:
        """Ends after the current compilation; callable from any thread."""
        self._is_closed.set()

    def _run(self) -> None:
        if sys.platform == "linux":  # elsewhere this sets the whole process
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        num_games = self.warm_up()
        if not self._is_closed.is_set():
            number = f"{num_games} of {len(self._registry.catalog.games())}"
            self._tell(f"{number} games are compiled; their pages open at once.")

    def warm_up(self) -> int:
        """Compiles all games; returns the number of games that are ready at the end,
        fewer if some were evicted from memory."""
        compiled, activity = [], self._registry.activity
        for key in list(self._registry.catalog.games()):
            try:
                for step in self._steps(key):
                    while activity.is_busy and not self._is_closed.is_set():
                        self._is_closed.wait(POLL_INTERVAL)
                    if self._is_closed.is_set():
                        return self._num_ready(compiled)
                    step()
            except Exception:  # clients of that game receive the error
                traceback.print_exc(file=sys.stderr)
            else:
                compiled.append(key)
        return self._num_ready(compiled)

    def _num_ready(self, compiled: list[str]) -> int:
        games = self._registry.catalog.games()
        offers = [games[key] for key in compiled if key in games]
        return sum(self._registry.is_ready(offer, _first(offer)) for offer in offers)

    def _steps(self, key: str) -> Iterator[Callable[[], object]]:
        registry = self._registry
        offer = registry.catalog.games().get(key)
        if offer is None:  # its run was deleted
            return
        yield lambda: registry.preview(offer)
        yield lambda: registry.rules(offer)
        yield lambda: registry.load(offer, _first(offer)).compile()


def _first(offer: GameOffer) -> PlayerOffer:
    return next(iter(offer.players.values()))
