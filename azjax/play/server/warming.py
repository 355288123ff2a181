"""Compiling what visitors will need, before they come."""

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

from azjax.play.server.catalog import GameOffer, PlayerOffer
from azjax.play.server.house import House

NICENESS = 10  # of the thread, where threads have one
LOOK_INTERVAL = 0.2  # between two looks whether visitors play (seconds)


class Warmer:
    """Compiles the games that are offered, each with its first player.

    It does one thing at a time, and begins none while visitors play: a visitor who
    comes meanwhile competes with one compilation at most.

    Args:
        house: what is offered.
        tell: called with a line of progress.
    """

    def __init__(self, house: House, tell: Callable[[str], object]):
        self._house, self._tell = house, tell
        self._is_closed = threading.Event()

    def start(self) -> None:
        """Begins in a thread of its own."""
        threading.Thread(target=self._run, name="azjax-warm-up", daemon=True).start()

    def close(self) -> None:
        """Begins nothing more; by any thread."""
        self._is_closed.set()

    def _run(self) -> None:
        if sys.platform == "linux":  # elsewhere it would be the whole process
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        num_games = self.warm_up()
        if not self._is_closed.is_set():
            number = f"{num_games} of {len(self._house.games())}"
            self._tell(f"{number} games are compiled; their pages open at once.")

    def warm_up(self) -> int:
        """Compiles everything; returns the number of games that are ready at the end,
        when memory may not have sufficed for all."""
        compiled = []
        for key in list(self._house.games()):
            try:
                for do in self._steps(key):
                    while self._house.is_busy and not self._is_closed.is_set():
                        self._is_closed.wait(LOOK_INTERVAL)
                    if self._is_closed.is_set():
                        return self._num_ready(compiled)
                    do()
            except Exception:  # visitors of that game get the error
                traceback.print_exc(file=sys.stderr)
            else:
                compiled.append(key)
        return self._num_ready(compiled)

    def _num_ready(self, compiled: list[str]) -> int:
        games = self._house.games()
        offers = [games[key] for key in compiled if key in games]
        return sum(self._house.is_ready(offer, _first(offer)) for offer in offers)

    def _steps(self, key: str) -> Iterator[Callable[[], object]]:
        house = self._house
        offer = house.games().get(key)
        if offer is None:  # its run is gone
            return
        yield lambda: house.preview(offer)
        yield lambda: house.rules(offer)
        yield lambda: house.host(offer, _first(offer)).compile()


def _first(offer: GameOffer) -> PlayerOffer:
    return next(iter(offer.players.values()))
