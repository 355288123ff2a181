"""Compilation of the games before clients ask for them."""

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

from azjax.play.server.catalog import GameOffer, PlayerOffer
from azjax.play.server.registry import PlayerRegistry

NICENESS = 10  # of the thread, on Linux
POLL_INTERVAL = 0.2  # between two checks for active clients (seconds)


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
